#include "codegen/emulator/ptx/Kernel.h"

#include <cstddef>

#include "codegen/emulator/State.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace normc::emulator::ptx {

using namespace llvm;
using Value = llvm::Value;

Kernel::Kernel(const Module& module, const Function& text, llvm::Module& ir, Program::State& state)
    : b(ir.getContext()), module_(module), text_(text), ir_(ir), state_(state) {
  entry.name = text.name;
  entry.parameters = uint32_t(text.parameters.size());
  const auto& most = text.maxThreads;
  if (most[0])
    entry.maxThreads =
        uint32_t(std::min<uint64_t>(limits::kBlockThreads, uint64_t(most[0]) * most[1] * most[2]));
  entry.exactThreads = text.exactThreads;
  entry.cluster = text.cluster;
}

void Kernel::refuse(const Twine& why) {
  if (refused_) return;
  refused_ = true;
  problems_.push_back(
      ("in @" + entry.name + ", line " + Twine(now_->line) + ": " + why + ": " + now_->text).str());
}

bool Kernel::knows(size_t first, std::initializer_list<StringRef> known) {
  for (size_t i = first; i < now_->words.size(); ++i)
    if (!typeOf(now_->words[i]) && !is_contained(known, StringRef(now_->words[i]))) {
      refuse("." + now_->words[i] + " is not emulated");
      return false;
    }
  return true;
}

//===-- Operands ----------------------------------------------------------------------------===//

const Operand& Kernel::operand(size_t i) {
  static const Operand none;
  if (i < now_->operands.size()) return now_->operands[i];
  refuse("too few operands");
  return none;
}

llvm::Type* Kernel::typeFor(const Type& type) {
  llvm::Type* lane = b.getIntNTy(type.bits);
  if (type.kind == Type::Brain) lane = b.getBFloatTy();
  if (type.kind == Type::Float && type.bits == 16) lane = b.getHalfTy();
  if (type.kind == Type::Float && type.bits == 32) lane = b.getFloatTy();
  if (type.kind == Type::Float && type.bits == 64) lane = b.getDoubleTy();
  return type.lanes > 1 ? FixedVectorType::get(lane, type.lanes) : lane;
}

/// Returns the index of a register in Thread::sreg, by its name, e.g. `%tid.x`; nothing if there is none.
static std::optional<uint32_t> sregOf(StringRef name) {
  auto [head, axis] = name.rsplit('.');
  if (axis.size() == 1 && axis[0] >= 'x' && axis[0] <= 'z') {
    int first = StringSwitch<int>(head)
                    .Case("%tid", Tid)
                    .Case("%ntid", Ntid)
                    .Case("%ctaid", Ctaid)
                    .Case("%nctaid", Nctaid)
                    .Case("%clusterid", Clusterid)
                    .Case("%nclusterid", Nclusterid)
                    .Case("%cluster_ctaid", ClusterCtaid)
                    .Case("%cluster_nctaid", ClusterNctaid)
                    .Default(-1);
    return first < 0 ? std::nullopt : std::optional(uint32_t(first + (axis[0] - 'x')));
  }
  int place = StringSwitch<int>(name)
                  .Case("%cluster_ctarank", ClusterCtarank)
                  .Case("%cluster_nctarank", ClusterNctarank)
                  .Case("%laneid", Laneid)
                  .Case("%warpid", Warpid)
                  .Case("%nwarpid", Nwarpid)
                  .Case("%lanemask_eq", LanemaskEq)
                  .Case("%lanemask_le", LanemaskLe)
                  .Case("%lanemask_lt", LanemaskLt)
                  .Case("%lanemask_ge", LanemaskGe)
                  .Case("%lanemask_gt", LanemaskGt)
                  .Case("%dynamic_smem_size", DynamicSmemSize)
                  .Case("%total_smem_size", TotalSmemSize)
                  .Default(-1);
  return place < 0 ? std::nullopt : std::optional(uint32_t(place));
}

Value* Kernel::special(StringRef name) {
  if (name == "WARP_SZ") return i32(32);
  if (name == "%is_explicit_cluster") return b.CreateICmpUGT(sreg(ClusterNctarank), i32(1));
  if (auto place = sregOf(name)) return sreg(*place);
  refuse("the special register " + name + " differs from device to device and is not emulated");
  return i32(0);
}

Value* Kernel::symbol(StringRef name) {
  if (Value* address = symbols_.lookup(name)) return address;
  refuse("'" + name + "' is not declared");
  return b.getInt64(0);
}

Value* Kernel::readBits(const Operand& operand, unsigned bits) {
  llvm::Type* type = b.getIntNTy(bits);
  Value* value = nullptr;
  switch (operand.kind) {
    case Operand::Number:
      if (operand.floatBits && operand.floatBits != bits)
        refuse("a number of " + Twine(operand.floatBits) + " bits for an operand of " + Twine(bits));
      return ConstantInt::get(type, uint64_t(operand.number), /*IsSigned=*/true, /*ImplicitTrunc=*/true);
    case Operand::Special:
      value = special(operand.name);
      break;
    case Operand::Symbol:
      value = symbol(operand.name);
      break;
    case Operand::Register: {
      AllocaInst* place = registers_[operand.index];
      auto* load = b.CreateLoad(place->getAllocatedType(), place);
      reads_[load] = now_;
      value = load;
      break;
    }
    default:
      refuse("an operand that is no number");
      return Constant::getNullValue(type);
  }
  if (value->getType() != type) {
    // A number may be read as a narrower one, but never as a wider one: its upper bits would be undefined.
    if (value->getType()->getIntegerBitWidth() < bits && operand.kind != Operand::Special)
      refuse("a register of " + Twine(value->getType()->getIntegerBitWidth()) + " bits for an operand of " +
             Twine(bits));
    value = b.CreateZExtOrTrunc(value, type);
  }
  return operand.negated ? b.CreateNot(value) : value;
}

Value* Kernel::read(const Operand& operand, const Type& type) {
  return b.CreateBitCast(readBits(operand, type.width()), typeFor(type));
}

Value* Kernel::readPredicate(const Operand& operand) { return readBits(operand, 1); }

Value* Kernel::address(const Operand& operand, uint8_t space) {
  Operand where = operand;
  if (operand.kind == Operand::Address)
    where = {.kind = operand.name.empty() ? Operand::Register : Operand::Symbol,
             .index = operand.index,
             .name = operand.name};
  const bool isShared = space == Space::Shared || space == Space::Distributed;
  const bool isHalf = where.kind == Operand::Register && text_.registers[where.index].bits == 32;
  // A register of 32 bits has the lower half of an address in shared memory.
  Value* base = isShared && isHalf
                    ? b.CreatePtrToInt(call("shared", b.getPtrTy(), {readBits(where, 32)}), b.getInt64Ty())
                    : readBits(where, 64);
  if (operand.kind == Operand::Address && operand.number)
    base = b.CreateAdd(base, b.getInt64(uint64_t(operand.number)));
  return b.CreateIntToPtr(base, b.getPtrTy(space));
}

std::optional<uint64_t> Kernel::parameterBytes(const Operand& operand) const {
  const auto at = llvm::find(text_.parameters, operand.name);
  const int64_t all = 8 * (text_.parameters.end() - at);
  if (operand.kind != Operand::Address || operand.number < 0 || operand.number > all) return std::nullopt;
  return uint64_t(all - operand.number);
}

void Kernel::write(const Operand& operand, Value* value, const Type& type) {
  if (operand.kind == Operand::Sink) return;
  if (operand.kind != Operand::Register) return refuse("a result that is no register");
  AllocaInst* place = registers_[operand.index];
  auto* wanted = cast<IntegerType>(place->getAllocatedType());
  const auto bits = unsigned(value->getType()->getPrimitiveSizeInBits());
  if (!value->getType()->isIntegerTy()) value = b.CreateBitCast(value, b.getIntNTy(bits));
  if (bits > wanted->getBitWidth())
    return refuse("a result of " + Twine(bits) + " bits for a register of " + Twine(wanted->getBitWidth()));
  value = type.kind == Type::Signed ? b.CreateSExt(value, wanted) : b.CreateZExt(value, wanted);
  b.CreateStore(value, place);
}

void Kernel::writePair(Value* first, Value* second) {
  const Operand& to = operand(0);
  if (to.kind != Operand::Pair) return write(to, first);
  write(to.elements[0], first);
  write(to.elements[1], second);
}

//===-- The emulator's functions --------------------------------------------------------------===//

Value* Kernel::call(StringRef name, llvm::Type* result, ArrayRef<Value*> arguments) {
  SmallVector<Value*> values{thread_};
  SmallVector<llvm::Type*> types{thread_->getType()};
  for (Value* v : arguments) {
    if (v->getType()->isIntegerTy(1)) v = b.CreateZExt(v, b.getInt32Ty());
    if (v->getType()->isPointerTy()) v = b.CreateAddrSpaceCast(v, b.getPtrTy());
    values.push_back(v);
    types.push_back(v->getType());
  }
  FunctionCallee hook =
      ir_.getOrInsertFunction(("emu." + name).str(), FunctionType::get(result, types, false));
  return b.CreateCall(hook, values);
}

Value* Kernel::callBool(StringRef name, ArrayRef<Value*> arguments) {
  return b.CreateTrunc(call(name, b.getInt8Ty(), arguments), b.getInt1Ty());
}

Value* Kernel::callMath(StringRef name, Value* argument) {
  llvm::Type* type = argument->getType();
  return b.CreateCall(ir_.getOrInsertFunction(("emu." + name).str(), type, type), argument);
}

Value* Kernel::site() {
  Site site;
  site.text = now_->text + " (line " + std::to_string(now_->line) + ")";
  state_.sites.push_back(site);
  return i32(uint32_t(state_.sites.size() - 1));
}

Value* Kernel::site(Value* pointer, uint64_t bytes, uint64_t align, uint8_t flags) {
  Value* number = site();
  Site& site = state_.sites.back();
  site.bytes = uint32_t(bytes);
  site.align = uint32_t(align);
  site.space = uint8_t(pointer->getType()->getPointerAddressSpace());
  site.flags = flags;
  site.scope = now_->has("cta") ? Scope::Block : now_->has("cluster") ? Scope::Cluster : Scope::Device;
  site.width = uint8_t(countr_zero(std::max<uint64_t>(1, std::min(align, bytes ? bytes & -bytes : align))));
  return number;
}

void Kernel::check(Value* pointer, uint64_t bytes, uint64_t align, uint8_t flags, uint64_t used) {
  Value* number = site(pointer, bytes, align, flags);
  state_.sites.back().used = uint32_t(used);
  call(flags & Site::Strong ? "strong" : "access", {pointer, number});
}

Value* Kernel::sreg(uint32_t index) {
  uint64_t offset = offsetof(Thread, sreg) + 4 * index;
  return b.CreateLoad(b.getInt32Ty(), b.CreateConstGEP1_64(b.getInt8Ty(), thread_, offset));
}

}  // namespace normc::emulator::ptx
