// mov, cvt, cvta, selp, setp: what moves numbers, converts and compares them.
#include "codegen/emulator/Site.h"
#include "codegen/emulator/ptx/Kernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Intrinsics.h"

namespace normc::emulator::ptx {

using namespace llvm;
using Value = llvm::Value;

//===-- mov -----------------------------------------------------------------------------------===//

static void move(Kernel& k) {
  if (!k.knows(1, {})) return;
  IRBuilder<>& b = k.b;
  const Operand &to = k.operand(0), &from = k.operand(1);
  if (k.now().types.empty()) return k.refuse("no type");
  const unsigned bits = k.now().types[0].width();
  for (const Operand& list : {from, to})
    if (list.kind == Operand::List && bits % list.elements.size())
      return k.refuse("a list of " + Twine(list.elements.size()) + " parts of " + Twine(bits) + " bits");
  if (from.kind == Operand::List) {
    const unsigned each = bits / unsigned(from.elements.size());
    Value* all = b.getIntN(bits, 0);
    for (auto [i, element] : enumerate(from.elements)) {
      Value* part = b.CreateZExt(k.readBits(element, each), b.getIntNTy(bits));
      all = b.CreateOr(all, b.CreateShl(part, each * i));
    }
    return k.write(to, all);
  }
  Value* value = k.readBits(from, bits);
  if (to.kind != Operand::List) return k.write(to, value);
  const unsigned each = bits / unsigned(to.elements.size());
  for (auto [i, element] : enumerate(to.elements))
    k.write(element, b.CreateTrunc(b.CreateLShr(value, each * i), b.getIntNTy(each)));
}

//===-- cvt -----------------------------------------------------------------------------------===//

/// Returns the float rounded to a whole number, by the mode that the instruction names; null: it names none.
static Value* rounded(Kernel& k, Value* x) {
  const Statement& s = k.now();
  const Intrinsic::ID id = s.has("rni")   ? Intrinsic::roundeven
                           : s.has("rzi") ? Intrinsic::trunc
                           : s.has("rmi") ? Intrinsic::floor
                           : s.has("rpi") ? Intrinsic::ceil
                                          : Intrinsic::not_intrinsic;
  return id == Intrinsic::not_intrinsic ? nullptr : k.b.CreateUnaryIntrinsic(id, x);
}

static Value* convertedFloat(Kernel& k, Value* x, const Type& to, const Type& from) {
  IRBuilder<>& b = k.b;
  llvm::Type* type = k.typeFor(to);
  if (!to.isFloat()) {
    Value* whole = rounded(k, x);
    if (!whole) return k.refuse("a float becomes an integer without a rounding"), nullptr;
    const bool isSigned = to.kind == Type::Signed;
    return b.CreateIntrinsic(isSigned ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat, {type, x->getType()},
                             {whole});
  }
  if (Value* whole = rounded(k, x)) x = whole;
  if (to.kind == from.kind && to.bits == from.bits) return x;
  if (to.bits == from.bits) x = b.CreateFPExt(x, b.getFloatTy());
  return to.bits > from.bits ? b.CreateFPExt(x, type) : b.CreateFPTrunc(x, type);
}

static void convert(Kernel& k) {
  const Statement& s = k.now();
  IRBuilder<>& b = k.b;
  if (!k.knows(1, {"rn", "rni", "rzi", "rmi", "rpi", "sat"})) return;
  if (s.types.size() != 2 || s.types[1].lanes != 1) return k.refuse("a conversion of other than two types");
  const Type &to = s.types[0], &from = s.types[1];
  if (to.lanes == 2) {  // the first source becomes the upper half
    Type each = to;
    each.lanes = 1;
    Value* both = PoisonValue::get(k.typeFor(to));
    for (unsigned i : {0u, 1u}) {
      Value* part = convertedFloat(k, k.read(k.operand(2 - i), from), each, from);
      both = b.CreateInsertElement(both, part, uint64_t(i));
    }
    return k.write(k.operand(0), both);
  }
  Value* x = k.read(k.operand(1), from);
  llvm::Type* type = k.typeFor(to);
  const bool isSigned = from.kind == Type::Signed;
  if (from.isFloat())
    x = convertedFloat(k, x, to, from);
  else if (to.isFloat())
    x = isSigned ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
  else if (s.has("sat"))
    return k.refuse(".sat of integers is not emulated");
  else
    x = isSigned ? b.CreateSExtOrTrunc(x, type) : b.CreateZExtOrTrunc(x, type);
  if (!x) return;
  if (s.has("sat") && to.isFloat())
    x = b.CreateMinNum(b.CreateMaxNum(x, ConstantFP::get(type, 0.0)), ConstantFP::get(type, 1.0));
  k.write(k.operand(0), x, to);
}

//===-- setp and selp ---------------------------------------------------------------------------===//

static CmpInst::Predicate comparisonOf(StringRef name, const Type& type) {
  if (type.isFloat())
    return StringSwitch<CmpInst::Predicate>(name)
        .Case("eq", CmpInst::FCMP_OEQ)
        .Case("ne", CmpInst::FCMP_ONE)
        .Case("lt", CmpInst::FCMP_OLT)
        .Case("le", CmpInst::FCMP_OLE)
        .Case("gt", CmpInst::FCMP_OGT)
        .Case("ge", CmpInst::FCMP_OGE)
        .Case("equ", CmpInst::FCMP_UEQ)
        .Case("neu", CmpInst::FCMP_UNE)
        .Case("ltu", CmpInst::FCMP_ULT)
        .Case("leu", CmpInst::FCMP_ULE)
        .Case("gtu", CmpInst::FCMP_UGT)
        .Case("geu", CmpInst::FCMP_UGE)
        .Case("num", CmpInst::FCMP_ORD)
        .Case("nan", CmpInst::FCMP_UNO)
        .Default(CmpInst::BAD_FCMP_PREDICATE);
  const bool isSigned = type.kind == Type::Signed;
  return StringSwitch<CmpInst::Predicate>(name)
      .Case("eq", CmpInst::ICMP_EQ)
      .Case("ne", CmpInst::ICMP_NE)
      .Cases({"lt", "lo"}, isSigned ? CmpInst::ICMP_SLT : CmpInst::ICMP_ULT)
      .Cases({"le", "ls"}, isSigned ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE)
      .Cases({"gt", "hi"}, isSigned ? CmpInst::ICMP_SGT : CmpInst::ICMP_UGT)
      .Cases({"ge", "hs"}, isSigned ? CmpInst::ICMP_SGE : CmpInst::ICMP_UGE)
      .Default(CmpInst::BAD_ICMP_PREDICATE);
}

static void compare(Kernel& k) {
  const Statement& s = k.now();
  IRBuilder<>& b = k.b;
  if (s.words.size() < 3 || s.types.size() != 1) return k.refuse("a comparison without its type");
  const CmpInst::Predicate how = comparisonOf(s.words[1], s.types[0]);
  const bool known = how != CmpInst::BAD_FCMP_PREDICATE && how != CmpInst::BAD_ICMP_PREDICATE;
  if (!known) return k.refuse("the comparison ." + s.words[1] + " is not emulated");
  if (!k.knows(2, {"and", "or", "xor"})) return;
  Value* is = b.CreateCmp(how, k.read(k.operand(1), s.types[0]), k.read(k.operand(2), s.types[0]));
  if (s.types[0].lanes == 2)
    return k.writePair(b.CreateExtractElement(is, uint64_t(0)), b.CreateExtractElement(is, uint64_t(1)));
  Value* isNot = b.CreateNot(is);
  if (k.operands() == 4) {
    Value* also = k.readPredicate(k.operand(3));
    const auto joined = [&](Value* p) {
      return s.has("and") ? b.CreateAnd(p, also) : s.has("or") ? b.CreateOr(p, also) : b.CreateXor(p, also);
    };
    is = joined(is), isNot = joined(isNot);
  }
  k.writePair(is, isNot);
}

/// `testp`: whether a float is a number, finite, ...
static void classify(Kernel& k) {
  const Statement& s = k.now();
  IRBuilder<>& b = k.b;
  if (s.words.size() != 3 || s.types.size() != 1 || !s.types[0].isFloat()) return k.refuse("not a test");
  Value* x = k.read(k.operand(1), s.types[0]);
  const unsigned classes = StringSwitch<unsigned>(s.words[1])
                               .Case("finite", fcFinite)
                               .Case("infinite", fcInf)
                               .Case("number", fcAllFlags & ~fcNan)
                               .Case("notanumber", fcNan)
                               .Case("normal", fcNormal)
                               .Case("subnormal", fcSubnormal)
                               .Default(0);
  if (!classes) return k.refuse("the test ." + s.words[1] + " is not emulated");
  k.write(k.operand(0), b.createIsFPClass(x, classes));
}

//===-- Addresses -----------------------------------------------------------------------------===//

static void testSpace(Kernel& k) {
  const Statement& s = k.now();
  const uint32_t space = StringSwitch<uint32_t>(s.words.size() > 1 ? s.words[1] : "")
                             .Case("global", Space::Global)
                             .Cases({"shared", "shared::cta"}, Space::Shared)
                             .Case("local", Space::Local)
                             .Case("shared::cluster", Space::Distributed)
                             .Default(Space::Constant);
  k.write(k.operand(0), k.callBool("isspace", {k.address(k.operand(1), Space::Generic), k.i32(space)}));
}

bool conversion(Kernel& k) {
  const Statement& s = k.now();
  const StringRef name = s.words[0];
  if (name == "mov") return move(k), true;
  if (name == "cvt") return convert(k), true;
  if (name == "setp") return compare(k), true;
  if (name == "testp") return classify(k), true;
  if (name == "isspacep") return testSpace(k), true;
  if (name == "selp" && s.types.size() == 1) {
    const unsigned bits = s.types[0].width();
    Value* chosen = k.b.CreateSelect(k.readPredicate(k.operand(3)), k.readBits(k.operand(1), bits),
                                     k.readBits(k.operand(2), bits));
    return k.write(k.operand(0), chosen), true;
  }
  // Addresses are those of this process in every space.
  if (name == "cvta") return k.write(k.operand(0), k.readBits(k.operand(1), 64)), true;
  // A comment of NVPTX: the register has no value, and none is used.
  if (name == "implicit-def") {
    const Operand& to = k.operand(0);
    if (to.kind == Operand::Register) k.write(to, Constant::getAllOnesValue(k.b.getIntNTy(k.bitsOf(to))));
    return true;
  }
  return false;
}

}  // namespace normc::emulator::ptx
