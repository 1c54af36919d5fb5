// shfl, vote, match, redux, elect: what the lanes of a warp do together.
#include "codegen/emulator/Site.h"
#include "codegen/emulator/ptx/Kernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Intrinsics.h"

namespace normc::emulator::ptx {

using namespace llvm;
using Value = llvm::Value;

/// `shfl.sync.bfly.b32 d|p, a, b, c, mask;`
static void shuffle(Kernel& k) {
  IRBuilder<>& b = k.b;
  if (!k.knows(2, {"up", "down", "bfly", "idx"})) return;
  const StringRef name = k.now().words.size() > 2 ? StringRef(k.now().words[2]) : "";
  const uint32_t mode = StringSwitch<uint32_t>(name)
                            .Case("up", ShuffleMode::Up)
                            .Case("down", ShuffleMode::Down)
                            .Case("bfly", ShuffleMode::Butterfly)
                            .Default(ShuffleMode::Index);
  const auto in = [&](size_t i) { return k.readBits(k.operand(i), 32); };
  Value* both = k.call("shuffle", b.getInt64Ty(), {in(4), in(1), k.i32(mode), in(2), in(3), k.site()});
  k.writePair(b.CreateTrunc(both, b.getInt32Ty()), b.CreateTrunc(b.CreateLShr(both, 32), b.getInt1Ty()));
}

/// `vote.sync.ballot.b32 d, p, mask;`
static void vote(Kernel& k) {
  IRBuilder<>& b = k.b;
  const Statement& s = k.now();
  if (!k.knows(2, {"ballot", "all", "any", "uni"})) return;
  Value *predicate = k.readPredicate(k.operand(1)), *mask = k.readBits(k.operand(2), 32);
  Value* votes = k.call("ballot", b.getInt32Ty(), {mask, predicate, k.site()});
  Value *all = b.CreateICmpEQ(votes, mask), *none = b.CreateICmpEQ(votes, k.i32(0));
  k.write(k.operand(0), s.has("ballot") ? votes
                        : s.has("all")  ? all
                        : s.has("any")  ? b.CreateNot(none)
                                        : b.CreateOr(all, none));
}

/// `match.any.sync.b32 d, a, mask;`, `match.all.sync.b32 d|p, a, mask;`
static void match(Kernel& k) {
  IRBuilder<>& b = k.b;
  if (k.now().types.empty() || !k.knows(1, {"any", "all", "sync"})) return k.refuse("no type");
  Value* value = b.CreateZExt(k.readBits(k.operand(1), k.now().types[0].bits), b.getInt64Ty());
  Value* mask = k.readBits(k.operand(2), 32);
  Value* same = k.call("match", b.getInt32Ty(), {mask, value, k.site()});
  if (k.now().has("any")) return k.write(k.operand(0), same);
  Value* all = b.CreateICmpEQ(same, mask);
  k.writePair(b.CreateSelect(all, same, k.i32(0)), all);
}

/// `redux.sync.add.u32 d, a, mask;`
static void reduce(Kernel& k) {
  IRBuilder<>& b = k.b;
  const Statement& s = k.now();
  if (s.words.size() < 4 || s.types.size() != 1 || !k.knows(3, {"abs", "NaN"})) return k.refuse("no type");
  const bool isFloat = s.types[0].isFloat(), isSigned = s.types[0].kind == Type::Signed;
  uint32_t how = StringSwitch<uint32_t>(s.words[2])
                     .Case("add", Reduction::Add)
                     .Case("min", isFloat    ? Reduction::Fmin
                                  : isSigned ? Reduction::Min
                                             : Reduction::Umin)
                     .Case("max", isFloat    ? Reduction::Fmax
                                  : isSigned ? Reduction::Max
                                             : Reduction::Umax)
                     .Case("and", Reduction::And)
                     .Case("or", Reduction::Or)
                     .Case("xor", Reduction::Xor)
                     .Default(~0u);
  if (how == ~0u) return k.refuse("." + s.words[2] + " is not emulated");
  if (s.has("abs")) how |= Reduction::Abs;
  if (s.has("NaN")) how |= Reduction::Nan;
  Value *value = k.readBits(k.operand(1), 32), *mask = k.readBits(k.operand(2), 32);
  k.write(k.operand(0), k.call("reduce", b.getInt32Ty(), {mask, value, k.i32(how), k.site()}));
}

/// `elect.sync d|p, mask;`
static void elect(Kernel& k) {
  IRBuilder<>& b = k.b;
  Value* mask = k.readBits(k.operand(1), 32);
  k.call("ballot", b.getInt32Ty(), {mask, b.getTrue(), k.site()});
  Value* leader = b.CreateBinaryIntrinsic(Intrinsic::cttz, mask, b.getTrue());
  k.writePair(leader, b.CreateICmpEQ(leader, k.sreg(Laneid)));
}

bool warpOperation(Kernel& k) {
  const Statement& s = k.now();
  if (s.is({"shfl", "sync"})) return shuffle(k), true;
  if (s.is({"vote", "sync"})) return vote(k), true;
  if (s.words[0] == "match" && s.has("sync")) return match(k), true;
  if (s.is({"redux", "sync"})) return reduce(k), true;
  if (s.is({"elect", "sync"})) return elect(k), true;
  return false;
}

}  // namespace normc::emulator::ptx
