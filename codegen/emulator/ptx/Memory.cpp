// ld, st, atom and red: each is checked before it is executed.
#include "codegen/emulator/Site.h"
#include "codegen/emulator/ptx/Kernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace normc::emulator::ptx {

using namespace llvm;
using Value = llvm::Value;

namespace {
/// The meaning of an access's words.
struct Access {
  Type type;
  unsigned count = 1;
  uint8_t space = Space::Generic, flags = 0;
  bool isParameter = false;
  StringRef operation;
  uint64_t each() const { return type.bits / 8; }
  uint64_t bytes() const { return each() * count; }
};
}  // namespace

static std::optional<Access> accessOf(Kernel& k) {
  const Statement& s = k.now();
  Access a;
  if (s.types.size() != 1 || s.types[0].bits % 8) return k.refuse("an access without a type"), std::nullopt;
  a.type = s.types[0];
  a.type.bits = a.type.width(), a.type.lanes = 1;
  for (StringRef word : ArrayRef(s.words).drop_front()) {
    if (typeOf(word)) continue;
    if (word == "v2" || word == "v4" || word == "v8")
      word.drop_front().getAsInteger(10, a.count);
    else if (word == "global")
      a.space = Space::Global;
    else if (word == "shared" || word == "shared::cta")
      a.space = Space::Shared;
    else if (word == "shared::cluster")
      a.space = Space::Distributed;
    else if (word == "const")
      a.space = Space::Constant;
    else if (word == "local")
      a.space = Space::Local;
    else if (word == "param")
      a.space = Space::Local, a.isParameter = true;
    else if (word == "nc")
      a.flags |= Site::NonCoherent;
    else if (word == "volatile" || word == "relaxed")
      a.flags |= Site::Strong;
    else if (word == "acquire")
      a.flags |= Site::Strong | Site::Acquire;
    else if (word == "release")
      a.flags |= Site::Strong | Site::Release;
    else if (word == "acq_rel")
      a.flags |= Site::Strong | Site::Acquire | Site::Release;
    else if (is_contained({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"}, word))
      a.operation = word;
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
                            "L2::evict_normal"},
                           word))
      return k.refuse("." + word + " is not emulated"), std::nullopt;
  }
  return a;
}

static ArrayRef<Operand> listOf(const Operand& operand) {
  return operand.kind == Operand::List ? ArrayRef(operand.elements) : ArrayRef(operand);
}

static Value* part(Kernel& k, Value* pointer, uint64_t offset) {
  return offset ? k.b.CreateConstGEP1_64(k.b.getInt8Ty(), pointer, offset) : pointer;
}

static void load(Kernel& k, const Access& a) {
  const auto targets = listOf(k.operand(0));
  if (targets.size() != a.count) return k.refuse("a list of other than " + Twine(a.count) + " registers");
  Value* pointer = k.address(k.operand(1), a.space);
  if (a.isParameter && k.parameterBytes(k.operand(1)).value_or(0) < a.bytes())
    return k.refuse("it reads beyond the parameters");
  // NVPTX reads a whole access where it needs the first elements.
  unsigned used = a.count;
  while (used > 1 && k.isIgnored(targets[used - 1])) --used;
  if (!a.isParameter) k.check(pointer, a.bytes(), a.bytes(), a.flags | Site::Read, a.each() * used);
  // All are read before one is written, which may be a part of the address.
  SmallVector<Value*> values;
  for (unsigned i = 0; i < a.count; ++i)
    values.push_back(
        k.b.CreateAlignedLoad(k.b.getIntNTy(a.type.bits), part(k, pointer, i * a.each()), Align(1)));
  for (auto [target, value] : zip(targets, values)) k.write(target, value, a.type);
}

static void store(Kernel& k, const Access& a) {
  const auto sources = listOf(k.operand(1));
  if (sources.size() != a.count) return k.refuse("a list of other than " + Twine(a.count) + " registers");
  if (a.isParameter) return k.refuse("a store to a parameter is not emulated");
  Value* pointer = k.address(k.operand(0), a.space);
  k.check(pointer, a.bytes(), a.bytes(), a.flags | Site::Write);
  for (auto [i, source] : enumerate(sources))
    k.b.CreateAlignedStore(k.readBits(source, a.type.bits), part(k, pointer, i * a.each()), Align(1));
}

static void atomic(Kernel& k, const Access& a, bool reduces) {
  IRBuilder<>& b = k.b;
  const size_t first = reduces ? 0 : 1;
  const bool swaps = a.operation == "cas";
  if (k.operands() != first + (swaps ? 3 : 2) || a.count != 1) return k.refuse("not so many operands");
  Value* pointer = k.address(k.operand(first), a.space);
  Value* x = k.read(k.operand(first + 1), a.type);
  k.check(pointer, a.bytes(), a.bytes(), a.flags | Site::Read | Site::Write | Site::Strong);
  constexpr auto ordering = AtomicOrdering::SequentiallyConsistent;
  const Align align(a.bytes());
  if (swaps) {
    Value* y = k.read(k.operand(first + 2), a.type);
    Value* pair = b.CreateAtomicCmpXchg(pointer, x, y, align, ordering, ordering);
    if (!reduces) k.write(k.operand(0), b.CreateExtractValue(pair, 0));
    return;
  }
  using Op = AtomicRMWInst::BinOp;
  const bool isSigned = a.type.kind == Type::Signed, isFloat = a.type.isFloat();
  const Op least = isFloat ? Op::FMin : isSigned ? Op::Min : Op::UMin;
  const Op most = isFloat ? Op::FMax : isSigned ? Op::Max : Op::UMax;
  const Op op = StringSwitch<Op>(a.operation)
                    .Case("add", isFloat ? Op::FAdd : Op::Add)
                    .Case("min", least)
                    .Case("max", most)
                    .Case("inc", Op::UIncWrap)
                    .Case("dec", Op::UDecWrap)
                    .Case("and", Op::And)
                    .Case("or", Op::Or)
                    .Case("xor", Op::Xor)
                    .Case("exch", Op::Xchg)
                    .Default(Op::BAD_BINOP);
  if (op == Op::BAD_BINOP) return k.refuse("no operation that is emulated");
  Value* old = b.CreateAtomicRMW(op, pointer, x, align, ordering);
  if (!reduces) k.write(k.operand(0), old);
}

bool memoryOperation(Kernel& k) {
  const Statement& s = k.now();
  const StringRef name = s.words[0];
  if (!is_contained({"ld", "st", "atom", "red"}, name) || s.has("async")) return false;
  const auto a = accessOf(k);
  if (!a) return true;
  if (name == "ld") return load(k, *a), true;
  if (name == "st") return store(k, *a), true;
  return atomic(k, *a, name == "red"), true;
}

}  // namespace normc::emulator::ptx
