// Inline PTX: a short table of the instructions that our kernels use. All others are refused by name.
#include "codegen/emulator/Ptx.h"
#include "codegen/emulator/Rewrite.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace normc::emulator {

using namespace llvm;

namespace {
/// The meaning of the words after `ld` and the like: `b32`, `v4`, `shared::cta`, `relaxed`.
struct Qualifiers {
  unsigned bits = 0, count = 1;
  char type = 'b';  ///< b, u, s, f
  uint8_t space = Space::Generic, flags = 0;
  StringRef operation;
  std::string unknown;
};

class Asm {
 public:
  Asm(Kernel& kernel, CallInst& call) : k_(kernel), call_(call), b_(kernel.builder) {
    auto* code = cast<InlineAsm>(call.getCalledOperand());
    for (const auto& constraint : code->ParseConstraints()) {
      outputs_ += constraint.Type == InlineAsm::isOutput;
      simple_ &=
          constraint.Type != InlineAsm::isLabel && !constraint.isIndirect && constraint.MatchingInput < 0;
    }
    results_.resize(outputs_);
  }
  void rewrite();

 private:
  bool statement(const PtxStatement&);
  bool move(const PtxStatement&);
  bool load(const PtxStatement&);
  bool store(const PtxStatement&);
  bool storeAsync(const PtxStatement&);
  bool atomic(const PtxStatement&, bool reduces);
  bool copy(const PtxStatement&);
  bool mbarrier(const PtxStatement&);
  bool synchronise(const PtxStatement&);

  Qualifiers qualifiersOf(const PtxStatement&, size_t from);
  Value* input(const PtxOperand&);
  Value* pointer(const PtxOperand&, uint8_t space);
  Value* number(const PtxOperand&, Type*);
  void set(const PtxOperand&, Value*, bool isSigned = false);
  Type* typeOf(const Qualifiers& q) {
    if (q.type == 'f' && q.bits >= 32) return q.bits == 32 ? b_.getFloatTy() : b_.getDoubleTy();
    return b_.getIntNTy(q.bits);
  }
  bool problem(const Twine& why) { return problem_ = why.str(), false; }

  Kernel& k_;
  CallInst& call_;
  IRBuilder<>& b_;
  unsigned outputs_ = 0;
  bool simple_ = true;
  std::string problem_;
  SmallVector<Value*> results_;
};
}  // namespace

//===-- Operands ----------------------------------------------------------------------------===//

Value* Asm::input(const PtxOperand& operand) {
  unsigned i = operand.index - outputs_;
  return operand.index >= outputs_ && i < call_.arg_size() ? call_.getArgOperand(i) : nullptr;
}

Value* Asm::pointer(const PtxOperand& operand, uint8_t space) {
  if (operand.kind != PtxOperand::Address) return nullptr;
  Value* p = input(operand);
  if (!p) return nullptr;
  if (p->getType()->isIntegerTy(32)) p = k_.call("shared", b_.getPtrTy(), {p});
  if (p->getType()->isIntegerTy()) p = b_.CreateIntToPtr(p, b_.getPtrTy());
  p = b_.CreateAddrSpaceCast(p, b_.getPtrTy(space));
  return operand.number ? b_.CreateConstGEP1_64(b_.getInt8Ty(), p, uint64_t(operand.number)) : p;
}

Value* Asm::number(const PtxOperand& operand, Type* type) {
  if (operand.kind == PtxOperand::Number) return ConstantInt::getSigned(type, operand.number);
  Value* value = operand.kind == PtxOperand::Register ? input(operand) : nullptr;
  if (!value) return nullptr;
  if (value->getType()->isIntegerTy() && type->isIntegerTy()) return b_.CreateZExtOrTrunc(value, type);
  return value->getType()->getPrimitiveSizeInBits() == type->getPrimitiveSizeInBits()
             ? b_.CreateBitCast(value, type)
             : nullptr;
}

void Asm::set(const PtxOperand& operand, Value* value, bool isSigned) {
  if (operand.kind != PtxOperand::Register || operand.index >= outputs_) return;
  Type* type = call_.getType();
  if (auto* structure = dyn_cast<StructType>(type)) type = structure->getElementType(operand.index);
  if (type->isIntegerTy() && !value->getType()->isIntegerTy())
    value = b_.CreateBitCast(value, b_.getIntNTy(unsigned(value->getType()->getPrimitiveSizeInBits())));
  if (type->isIntegerTy())
    value = isSigned ? b_.CreateSExtOrTrunc(value, type) : b_.CreateZExtOrTrunc(value, type);
  results_[operand.index] = b_.CreateBitCast(value, type);
}

Qualifiers Asm::qualifiersOf(const PtxStatement& s, size_t from) {
  Qualifiers q;
  for (StringRef word : ArrayRef(s.words).drop_front(from)) {
    if (word.size() >= 2 && StringRef("busf").contains(word[0]) &&
        !word.drop_front().getAsInteger(10, q.bits)) {
      q.type = word[0];
      continue;
    }
    if (word == "v2" || word == "v4" || word == "v8") {
      word.drop_front().getAsInteger(10, q.count);
      continue;
    }
    if (word == "global")
      q.space = Space::Global;
    else if (word == "shared" || word == "shared::cta")
      q.space = Space::Shared;
    else if (word == "shared::cluster")
      q.space = Space::Distributed;
    else if (word == "nc")
      q.flags |= Site::NonCoherent;
    else if (word == "volatile" || word == "relaxed")
      q.flags |= Site::Strong;
    else if (word == "acquire")
      q.flags |= Site::Strong | Site::Acquire;
    else if (word == "release")
      q.flags |= Site::Strong | Site::Release;
    else if (word == "acq_rel")
      q.flags |= Site::Strong | Site::Acquire | Site::Release;
    else if (is_contained({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"}, word))
      q.operation = word;
    else if (!is_contained({"weak",
                            "cta",
                            "cluster",
                            "gpu",
                            "sys",
                            "ca",
                            "cg",
                            "cs",
                            "lu",
                            "cv",
                            "wb",
                            "wt",
                            "noftz",
                            "L1::no_allocate",
                            "L1::evict_first",
                            "L1::evict_last",
                            "L1::evict_normal",
                            "L1::evict_unchanged",
                            "L2::64B",
                            "L2::128B",
                            "L2::256B",
                            "L2::evict_first",
                            "L2::evict_last",
                            "L2::evict_normal",
                            "mbarrier::complete_tx::bytes"},
                           word))
      q.unknown = word.str();
  }
  if (q.bits % 8) q.unknown = "a type of " + std::to_string(q.bits) + " bits";
  return q;
}

//===-- Memory ------------------------------------------------------------------------------===//

static ArrayRef<PtxOperand> listOf(const PtxOperand& operand) {
  return operand.kind == PtxOperand::List ? ArrayRef(operand.elements) : ArrayRef(operand);
}

bool Asm::move(const PtxStatement& s) {
  Qualifiers q = qualifiersOf(s, 1);
  Value* value = s.operands.size() == 2 && q.bits ? number(s.operands[1], typeOf(q)) : nullptr;
  if (!value) return false;
  set(s.operands[0], value);
  return true;
}

bool Asm::load(const PtxStatement& s) {
  Qualifiers q = qualifiersOf(s, 1);
  if (!q.unknown.empty()) return problem("." + q.unknown + " is not emulated");
  Value* p = s.operands.size() == 2 && q.bits ? pointer(s.operands[1], q.space) : nullptr;
  if (!p) return false;
  auto targets = listOf(s.operands[0]);
  if (targets.size() != q.count) return false;
  uint64_t each = q.bits / 8;
  k_.check(call_, p, each * q.count, each * q.count, q.flags | Site::Read);
  for (unsigned i = 0; i < q.count; ++i) {
    Value* at = b_.CreateConstGEP1_64(b_.getInt8Ty(), p, each * i);
    set(targets[i], b_.CreateAlignedLoad(typeOf(q), at, Align(each)), q.type == 's');
  }
  return true;
}

bool Asm::store(const PtxStatement& s) {
  Qualifiers q = qualifiersOf(s, 1);
  if (!q.unknown.empty()) return problem("." + q.unknown + " is not emulated");
  Value* p = s.operands.size() == 2 && q.bits ? pointer(s.operands[0], q.space) : nullptr;
  if (!p) return false;
  auto sources = listOf(s.operands[1]);
  if (sources.size() != q.count) return false;
  uint64_t each = q.bits / 8;
  k_.check(call_, p, each * q.count, each * q.count, q.flags | Site::Write);
  for (unsigned i = 0; i < q.count; ++i) {
    Value* value = number(sources[i], typeOf(q));
    if (!value) return false;
    b_.CreateAlignedStore(value, b_.CreateConstGEP1_64(b_.getInt8Ty(), p, each * i), Align(each));
  }
  return true;
}

bool Asm::storeAsync(const PtxStatement& s) {
  if (!s.has("shared::cluster") || !s.has("mbarrier::complete_tx::bytes")) return false;
  Qualifiers q = qualifiersOf(s, 2);
  if (!q.unknown.empty()) return problem("." + q.unknown + " is not emulated");
  if (s.operands.size() != 3 || !q.bits) return false;
  Value *to = pointer(s.operands[0], Space::Distributed),
        *barrier = pointer(s.operands[2], Space::Distributed);
  auto sources = listOf(s.operands[1]);
  if (!to || !barrier || sources.size() != q.count) return false;
  const uint64_t each = q.bits / 8;
  for (unsigned i = 0; i < q.count; ++i) {
    Value* value = number(sources[i], b_.getIntNTy(q.bits));
    if (!value) return false;
    Value* at = b_.CreateConstGEP1_64(b_.getInt8Ty(), to, each * i);
    k_.call("store.async", {at, barrier, b_.CreateZExt(value, b_.getInt64Ty()), k_.i32(uint32_t(each)),
                            k_.site(call_, at, each, i ? each : each * q.count, Site::Write | Site::Copied)});
  }
  return true;
}

bool Asm::atomic(const PtxStatement& s, bool reduces) {
  Qualifiers q = qualifiersOf(s, 1);
  if (!q.unknown.empty()) return problem("." + q.unknown + " is not emulated");
  size_t first = reduces ? 0 : 1;
  bool cas = q.operation == "cas";
  if (s.operands.size() != first + (cas ? 3 : 2) || q.count != 1 || !q.bits) return false;
  Value *p = pointer(s.operands[first], q.space), *x = number(s.operands[first + 1], typeOf(q));
  if (!p || !x) return false;
  uint64_t bytes = q.bits / 8;
  k_.check(call_, p, bytes, bytes, q.flags | Site::Read | Site::Write | Site::Strong);
  constexpr auto ordering = AtomicOrdering::SequentiallyConsistent;
  Value* old;
  if (cas) {
    Value* y = number(s.operands[first + 2], typeOf(q));
    if (!y) return false;
    old = b_.CreateExtractValue(b_.CreateAtomicCmpXchg(p, x, y, Align(bytes), ordering, ordering), 0);
  } else {
    bool isSigned = q.type == 's', isFloat = q.type == 'f';
    using Op = AtomicRMWInst::BinOp;
    Op op = StringSwitch<Op>(q.operation)
                .Case("add", isFloat ? Op::FAdd : Op::Add)
                .Case("min", isFloat    ? Op::FMin
                             : isSigned ? Op::Min
                                        : Op::UMin)
                .Case("max", isFloat    ? Op::FMax
                             : isSigned ? Op::Max
                                        : Op::UMax)
                .Case("inc", Op::UIncWrap)
                .Case("dec", Op::UDecWrap)
                .Case("and", Op::And)
                .Case("or", Op::Or)
                .Case("xor", Op::Xor)
                .Case("exch", Op::Xchg)
                .Default(Op::BAD_BINOP);
    if (op == Op::BAD_BINOP) return false;
    old = b_.CreateAtomicRMW(op, p, x, Align(bytes), ordering);
  }
  if (!reduces) set(s.operands[0], old);
  return true;
}

bool Asm::copy(const PtxStatement& s) {
  auto simple = [&](const char* hook) { return s.operands.empty() && (k_.call(hook, {}), true); };
  auto arguments = [&](Value* p, uint8_t flags, uint64_t align) {
    return k_.site(call_, p, 0, align, flags);
  };
  if (s.is({"cp", "async", "commit_group"})) return simple("copy.commit");
  if (s.is({"cp", "async", "wait_all"})) return simple("copy.waitall");
  if (s.is({"cp", "async", "wait_group"})) {
    Value* left = s.operands.size() == 1 ? number(s.operands[0], b_.getInt32Ty()) : nullptr;
    return left && (k_.call("copy.wait", {left}), true);
  }
  bool bulk = s.is({"cp", "async", "bulk", "shared::cluster", "global", "mbarrier::complete_tx::bytes"}) &&
              s.words.size() == 6;
  if (bulk) {
    if (s.operands.size() != 4) return false;
    Value *to = pointer(s.operands[0], Space::Distributed), *from = pointer(s.operands[1], Space::Global);
    Value *bytes = number(s.operands[2], b_.getInt32Ty()), *barrier = pointer(s.operands[3], Space::Shared);
    if (!to || !from || !bytes || !barrier) return false;
    k_.call("bulk", {to, barrier, from, bytes, k_.i32(0), arguments(to, Site::Write | Site::Copied, 16),
                     arguments(from, Site::Read | Site::Copied, 16)});
    return true;
  }
  if (!s.is({"cp", "async", "ca"}) && !s.is({"cp", "async", "cg"})) return false;
  Qualifiers q = qualifiersOf(s, 2);
  bool target = s.has("global") && (s.has("shared") || s.has("shared::cta"));
  if (!q.unknown.empty() || !target || s.operands.size() < 3 || s.operands[2].kind != PtxOperand::Number)
    return false;
  Value *to = pointer(s.operands[0], Space::Shared), *from = pointer(s.operands[1], Space::Global);
  auto size = uint32_t(s.operands[2].number);
  Value* given = s.operands.size() == 4 ? number(s.operands[3], b_.getInt32Ty()) : k_.i32(size);
  if (!to || !from || !given || s.operands.size() > 4) return false;
  bool sizes = size == 16 || (s.words[2] == "ca" && (size == 4 || size == 8));
  if (!sizes) return problem("a cp.async of " + Twine(size) + " bytes does not exist");
  k_.call("copy", {to, from, k_.i32(size), given, arguments(to, Site::Write | Site::Copied, size),
                   arguments(from, Site::Read | Site::Copied, size)});
  return true;
}

//===-- Synchronisation -----------------------------------------------------------------------===//

bool Asm::mbarrier(const PtxStatement& s) {
  if (!s.has("b64")) return false;
  uint8_t space = s.has("shared::cluster")                  ? Space::Distributed
                  : s.has("shared") || s.has("shared::cta") ? Space::Shared
                                                            : Space::Generic;
  bool arrives = s.is({"mbarrier", "arrive"}), tests = s.has("parity");
  size_t first = arrives || tests ? 1 : 0;
  if (s.operands.size() <= first) return false;
  Value* p = pointer(s.operands[first], space);
  Value* x = s.operands.size() > first + 1 ? number(s.operands[first + 1], b_.getInt32Ty()) : nullptr;
  if (!p || s.has("noComplete")) return false;
  Value* site = k_.site(call_, p, 8, 8, Site::Read | Site::Write | Site::Strong);
  if (s.is({"mbarrier", "init"})) return x && (k_.call("mbarrier.init", {p, x, site}), true);
  if (s.is({"mbarrier", "inval"})) return k_.call("mbarrier.inval", {p, site}), true;
  if (s.is({"mbarrier", "expect_tx"}))
    return x && (k_.call("mbarrier.expect", {p, b_.CreateZExt(x, b_.getInt64Ty()), site}), true);
  if (arrives) {
    bool expects = s.has("expect_tx");
    if (expects && !x) return false;
    Value* count = expects || !x ? k_.i32(1) : x;
    set(s.operands[0], k_.call("mbarrier.arrive", b_.getInt64Ty(),
                               {p, count, expects ? x : k_.i32(0), b_.getFalse(), site}));
    return true;
  }
  return false;
}

bool Asm::synchronise(const PtxStatement& s) {
  auto argument = [&](size_t i) {
    return i < s.operands.size() ? number(s.operands[i], b_.getInt32Ty()) : nullptr;
  };
  if (s.is({"bar", "warp", "sync"}))
    return argument(0) && (k_.call("warpsync", {argument(0), k_.site(call_)}), true);
  if (s.is({"barrier", "cluster", "arrive"}))
    return k_.call("cluster.arrive", {b_.getInt1(s.has("relaxed")), k_.site(call_)}), true;
  if (s.is({"barrier", "cluster", "wait"})) return k_.call("cluster.wait", {k_.site(call_)}), true;
  bool barrier = s.words[0] == "bar" || s.words[0] == "barrier";
  if (barrier && (s.has("sync") || s.has("arrive")) && argument(0)) {
    Value* count = argument(1) ? argument(1) : k_.i32(0);
    k_.call(s.has("sync") ? "barrier" : "barrier.arrive", {argument(0), count, k_.site(call_)});
    return true;
  }
  if (s.words[0] == "nanosleep") return k_.call("yield", {k_.site(call_)}), true;
  if (s.words[0] == "membar" || s.words[0] == "fence") {
    bool nothing = s.has("proxy") || s.has("mbarrier_init") || s.has("cta");
    if (s.has("tensormap::generic")) return false;
    if (!nothing) k_.call("fence", {});
    return true;
  }
  return s.words[0] == "prefetch" || s.words[0] == "prefetchu" || s.words[0] == "griddepcontrol";
}

bool Asm::statement(const PtxStatement& s) {
  if (s.words[0] == "mov") return move(s);
  if (s.words[0] == "ld") return load(s);
  if (s.is({"st", "async"})) return storeAsync(s);
  if (s.words[0] == "st") return store(s);
  if (s.words[0] == "atom") return atomic(s, false);
  if (s.words[0] == "red" && !s.has("async")) return atomic(s, true);
  if (s.is({"cp", "async"})) return copy(s);
  if (s.words[0] == "mbarrier") return mbarrier(s);
  return synchronise(s);
}

//===-- The whole -----------------------------------------------------------------------------===//

void Asm::rewrite() {
  StringRef text = cast<InlineAsm>(call_.getCalledOperand())->getAsmString();
  if (simple_ && outputs_ == 0 && call_.arg_size() >= 2 && isWaitLoop(text)) {
    PtxOperand address{.kind = PtxOperand::Address, .index = 0};
    Value* p = pointer(address, StringRef(text).contains(".shared") ? Space::Shared : Space::Generic);
    Value* parity = b_.CreateZExt(call_.getArgOperand(1), b_.getInt64Ty());
    k_.call("mbarrier.test", b_.getInt8Ty(),
            {p, parity, b_.getTrue(), b_.getTrue(), k_.site(call_, p, 8, 8, Site::Read | Site::Strong)});
    return k_.replace(call_, nullptr);
  }
  auto statements = parsePtx(text);
  if (!simple_ || !statements || statements->empty())
    return k_.refuse(call_, "this inline PTX is not emulated");
  for (const PtxStatement& s : *statements) {
    if (s.predicate) {
      Value* predicate = input({.kind = PtxOperand::Register, .index = *s.predicate});
      if (!predicate || !predicate->getType()->isIntegerTy(1) || outputs_)
        return k_.refuse(call_, "inline PTX under this predicate is not emulated");
      if (s.negated) predicate = b_.CreateNot(predicate);
      b_.SetInsertPoint(SplitBlockAndInsertIfThen(predicate, &call_, false));
    }
    if (!statement(s))
      return k_.refuse(call_, problem_.empty() ? "inline PTX '" + s.text + "' is not emulated" : problem_);
    b_.SetInsertPoint(&call_);
  }
  if (outputs_ == 0) return k_.replace(call_, nullptr);
  if (is_contained(results_, nullptr)) return k_.refuse(call_, "not every result of this inline PTX is set");
  Value* result = results_[0];
  if (auto* structure = dyn_cast<StructType>(call_.getType())) {
    result = PoisonValue::get(structure);
    for (unsigned i = 0; i < outputs_; ++i) result = b_.CreateInsertValue(result, results_[i], i);
  }
  k_.replace(call_, result);
}

void rewritePtx(Kernel& kernel, CallInst& call) { Asm(kernel, call).rewrite(); }

}  // namespace normc::emulator
