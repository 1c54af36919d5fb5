// Intrinsics of NVVM that synchronise, copy, or read the indices of the thread. Those that only
// compute are in RewriteMath.cpp.
#include "codegen/emulator/Rewrite.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Intrinsics.h"

namespace normc::emulator {

using namespace llvm;

//===-- Indices of the thread ----------------------------------------------------------------===//

/// Returns the index of a register in Thread::sreg, by its name, e.g. `tid.x`; nothing if there is none.
static std::optional<uint32_t> sregOf(StringRef name) {
  auto [head, axis] = name.rsplit('.');
  if (axis.size() == 1 && axis[0] >= 'x' && axis[0] <= 'z') {
    int first = StringSwitch<int>(head)
                    .Case("tid", Tid)
                    .Case("ntid", Ntid)
                    .Case("ctaid", Ctaid)
                    .Case("nctaid", Nctaid)
                    .Case("clusterid", Clusterid)
                    .Case("nclusterid", Nclusterid)
                    .Case("cluster.ctaid", ClusterCtaid)
                    .Case("cluster.nctaid", ClusterNctaid)
                    .Default(-1);
    if (first >= 0) return uint32_t(first + (axis[0] - 'x'));
  }
  int place = StringSwitch<int>(name)
                  .Case("cluster.ctarank", ClusterCtarank)
                  .Case("cluster.nctarank", ClusterNctarank)
                  .Case("laneid", Laneid)
                  .Case("warpid", Warpid)
                  .Case("nwarpid", Nwarpid)
                  .Case("lanemask.eq", LanemaskEq)
                  .Case("lanemask.le", LanemaskLe)
                  .Case("lanemask.lt", LanemaskLt)
                  .Case("lanemask.ge", LanemaskGe)
                  .Case("lanemask.gt", LanemaskGt)
                  .Case("dynamic_smem_size", DynamicSmemSize)
                  .Case("total_smem_size", TotalSmemSize)
                  .Default(-1);
  return place < 0 ? std::nullopt : std::optional<uint32_t>(place);
}

static bool rewriteSreg(Kernel& k, CallInst& call, StringRef name) {
  if (!name.consume_front("read.ptx.sreg.")) return false;
  if (name == "warpsize") return k.replace(call, k.i32(32)), true;
  if (auto place = sregOf(name))
    k.replace(call, k.sreg(*place));
  else
    k.refuse(call, "the special register %" + name + " differs from device to device and is not emulated");
  return true;
}

//===-- Warps -------------------------------------------------------------------------------===//

static bool rewriteShuffle(Kernel& k, CallInst& call, StringRef name) {
  if (!name.consume_front("shfl.sync.")) return false;
  auto [modeName, type] = name.split('.');
  uint32_t mode = StringSwitch<uint32_t>(modeName).Case("up", 0).Case("down", 1).Case("bfly", 2).Default(3);
  IRBuilder<>& b = k.builder;
  Value* value = call.getArgOperand(1);
  bool isFloat = value->getType()->isFloatTy();
  if (isFloat) value = b.CreateBitCast(value, b.getInt32Ty());
  Value* both = k.call("shuffle", b.getInt64Ty(),
                       {call.getArgOperand(0), value, k.i32(mode), call.getArgOperand(2),
                        call.getArgOperand(3), k.site(call)});
  Value* got = b.CreateTrunc(both, b.getInt32Ty());
  if (isFloat) got = b.CreateBitCast(got, b.getFloatTy());
  if (!type.ends_with("p")) return k.replace(call, got), true;
  Value* pair = b.CreateInsertValue(PoisonValue::get(call.getType()), got, 0);
  k.replace(call, b.CreateInsertValue(pair, b.CreateTrunc(b.CreateLShr(both, 32), b.getInt1Ty()), 1));
  return true;
}

static bool rewriteVote(Kernel& k, CallInst& call, StringRef name) {
  IRBuilder<>& b = k.builder;
  auto ballot = [&](Value* mask, Value* vote) {
    return k.call("ballot", b.getInt32Ty(), {mask, vote, k.site(call)});
  };
  auto argument = [&](unsigned i) { return call.getArgOperand(i); };
  if (name == "vote.ballot.sync") return k.replace(call, ballot(argument(0), argument(1))), true;
  if (name == "vote.all.sync")
    return k.replace(call, b.CreateICmpEQ(ballot(argument(0), argument(1)), argument(0))), true;
  if (name == "vote.any.sync")
    return k.replace(call, b.CreateICmpNE(ballot(argument(0), argument(1)), k.i32(0))), true;
  if (name == "vote.uni.sync") {
    Value* votes = ballot(argument(0), argument(1));
    k.replace(call, b.CreateOr(b.CreateICmpEQ(votes, argument(0)), b.CreateICmpEQ(votes, k.i32(0))));
    return true;
  }
  if (name.starts_with("match.any.sync") || name.starts_with("match.all.sync")) {
    Value* value = b.CreateZExt(argument(1), b.getInt64Ty());
    Value* same = k.call("match", b.getInt32Ty(), {argument(0), value, k.site(call)});
    if (name.starts_with("match.any")) return k.replace(call, same), true;
    Value* all = b.CreateICmpEQ(same, argument(0));
    Value* pair =
        b.CreateInsertValue(PoisonValue::get(call.getType()), b.CreateSelect(all, same, k.i32(0)), 0);
    return k.replace(call, b.CreateInsertValue(pair, all, 1)), true;
  }
  if (name == "elect.sync") {
    ballot(argument(0), b.getTrue());
    Value* leader = b.CreateBinaryIntrinsic(Intrinsic::cttz, argument(0), b.getTrue());
    Value* pair = b.CreateInsertValue(PoisonValue::get(call.getType()), leader, 0);
    return k.replace(call, b.CreateInsertValue(pair, b.CreateICmpEQ(leader, k.sreg(Laneid)), 1)), true;
  }
  return false;
}

static bool rewriteRedux(Kernel& k, CallInst& call, StringRef name) {
  if (!name.consume_front("redux.sync.")) return false;
  // The numbers of Reduction, kAbs and kNan in Warp.cpp.
  auto [op, options] = name.split('.');
  uint32_t how = StringSwitch<uint32_t>(op)
                     .Case("add", 0)
                     .Case("min", 1)
                     .Case("max", 2)
                     .Case("umin", 3)
                     .Case("umax", 4)
                     .Case("and", 5)
                     .Case("or", 6)
                     .Case("xor", 7)
                     .Case("fmin", 8)
                     .Default(9);
  if (options.contains("abs")) how |= 16;
  if (options.contains("NaN")) how |= 32;
  IRBuilder<>& b = k.builder;
  Value* value = b.CreateBitCast(call.getArgOperand(0), b.getInt32Ty());
  Value* sum = k.call("reduce", b.getInt32Ty(), {call.getArgOperand(1), value, k.i32(how), k.site(call)});
  k.replace(call, b.CreateBitCast(sum, call.getType()));
  return true;
}

//===-- Barriers and fences -------------------------------------------------------------------===//

static bool rewriteBarrier(Kernel& k, CallInst& call, StringRef name) {
  IRBuilder<>& b = k.builder;
  auto argument = [&](unsigned i) { return call.getArgOperand(i); };
  if (name == "bar.warp.sync")
    return k.call("warpsync", {argument(0), k.site(call)}), k.replace(call, nullptr), true;
  if (name.consume_front("barrier.cta.")) {
    bool all = name.ends_with(".all");
    Value *id = argument(0), *count = all ? k.i32(0) : argument(1);
    auto vote = [&] { return argument(all ? 1 : 2); };
    if (name.starts_with("sync.")) {
      k.call("barrier", {id, count, k.site(call)});
      k.replace(call, nullptr);
    } else if (name.starts_with("arrive.")) {
      k.call("barrier.arrive", {id, count, k.site(call)});
      k.replace(call, nullptr);
    } else if (name.starts_with("red.and.")) {
      k.replace(call, k.callBool("barrier.all", {id, count, vote(), k.site(call)}));
    } else {
      Value* votes = k.call("barrier.count", b.getInt32Ty(), {id, count, vote(), k.site(call)});
      k.replace(call, name.starts_with("red.popc.") ? votes : b.CreateICmpNE(votes, k.i32(0)));
    }
    return true;
  }
  if (name.consume_front("barrier.cluster.")) {
    if (name.starts_with("arrive"))
      k.call("cluster.arrive", {b.getInt1(name.contains("relaxed")), k.site(call)});
    else
      k.call("cluster.wait", {k.site(call)});
    k.replace(call, nullptr);
    return true;
  }
  // Fences between proxies: copies complete at once here, so there is nothing to wait for.
  bool nothing = name == "membar.cta" || name.starts_with("fence.proxy.") ||
                 name.starts_with("fence.mbarrier_init.") || name.starts_with("griddepcontrol.") ||
                 name.starts_with("prefetch") || name.starts_with("applypriority.");
  bool fence = name == "membar.gl" || name == "membar.sys" || name == "fence.sc.cluster" ||
               name.starts_with("fence.acquire.") || name.starts_with("fence.release.");
  if (name == "nanosleep") return k.call("yield", {k.site(call)}), k.replace(call, nullptr), true;
  if (name.starts_with("fence.proxy.tensormap")) return false;
  if (fence) k.call("fence", {});
  if (!fence && !nothing) return false;
  k.replace(call, nullptr);
  return true;
}

//===-- mbarriers and copies ------------------------------------------------------------------===//

static bool rewriteMbarrier(Kernel& k, CallInst& call, StringRef name) {
  if (!name.consume_front("mbarrier.")) return false;
  IRBuilder<>& b = k.builder;
  auto argument = [&](unsigned i) { return call.getArgOperand(i); };
  auto site = [&] { return k.site(call, argument(0), 8, 8, Site::Read | Site::Write | Site::Strong); };
  bool drop = name.starts_with("arrive.drop");
  if (name.starts_with("init")) {
    k.call("mbarrier.init", {argument(0), argument(1), site()});
    return k.replace(call, nullptr), true;
  }
  if (name.starts_with("inval"))
    return k.call("mbarrier.inval", {argument(0), site()}), k.replace(call, nullptr), true;
  if (name.starts_with("arrive")) {
    bool expects = name.contains("expect.tx"), scoped = name.contains("scope.");
    Value* count = (scoped && !expects) || name.contains("noComplete") ? argument(1) : k.i32(1);
    Value* bytes = expects ? argument(1) : k.i32(0);
    Value* state =
        k.call("mbarrier.arrive", b.getInt64Ty(), {argument(0), count, bytes, b.getInt1(drop), site()});
    return k.replace(call, call.getType()->isVoidTy() ? nullptr : state), true;
  }
  if (name.starts_with("expect.tx") || name.starts_with("complete.tx")) {
    Value* bytes = b.CreateZExt(argument(1), b.getInt64Ty());
    if (name.starts_with("complete")) bytes = b.CreateNeg(bytes);
    k.call("mbarrier.expect", {argument(0), bytes, site()});
    return k.replace(call, nullptr), true;
  }
  if (name.starts_with("test.wait") || name.starts_with("try.wait")) {
    bool parity = name.contains("parity");
    Value* state = b.CreateZExt(argument(1), b.getInt64Ty());
    Value* done = k.callBool(
        "mbarrier.test", {argument(0), state, b.getInt1(parity), b.getInt1(name.starts_with("try")), site()});
    return k.replace(call, done), true;
  }
  return false;
}

static bool rewriteCopies(Kernel& k, CallInst& call, StringRef name) {
  if (!name.consume_front("cp.async.")) return false;
  IRBuilder<>& b = k.builder;
  auto argument = [&](unsigned i) { return call.getArgOperand(i); };
  auto isTrue = [&](unsigned i) { return cast<ConstantInt>(argument(i))->isOne(); };
  auto target = [&](Value* p, uint64_t align) {
    return k.site(call, p, 0, align, Site::Write | Site::Copied);
  };
  auto source = [&](Value* p, uint64_t align) {
    return k.site(call, p, 0, align, Site::Read | Site::Copied);
  };
  auto bulk = [&](Value* to, Value* mbarrier, Value* from, Value* bytes, Value* mask) {
    k.call("bulk", {to, mbarrier, from, bytes, mask, target(to, 16), source(from, 16)});
  };
  uint64_t bytes = 0;
  if (name.starts_with("ca.shared.global.") || name.starts_with("cg.shared.global.")) {
    name.split("global.").second.split('.').first.getAsInteger(10, bytes);
    Value* given = name.ends_with(".s") ? argument(2) : k.i32(uint32_t(bytes));
    k.call("copy", {argument(0), argument(1), k.i32(uint32_t(bytes)), given, target(argument(0), bytes),
                    source(argument(1), bytes)});
  } else if (name == "commit.group") {
    k.call("copy.commit", {});
  } else if (name == "wait.group") {
    k.call("copy.wait", {argument(0)});
  } else if (name == "wait.all") {
    k.call("copy.waitall", {});
  } else if (name.starts_with("mbarrier.arrive")) {
    k.call("copy.arrive", {argument(0), b.getInt1(name.contains("noinc")),
                           k.site(call, argument(0), 8, 8, Site::Read | Site::Write | Site::Strong)});
  } else if (name == "bulk.global.to.shared.cluster") {
    bulk(argument(0), argument(1), argument(2), argument(3),
         isTrue(6) ? b.CreateZExt(argument(4), b.getInt32Ty()) : k.i32(0));
  } else if (name == "bulk.global.to.shared.cta") {
    bulk(argument(0), argument(1), argument(2), argument(3), k.i32(0));
  } else if (name == "bulk.shared.cta.to.cluster") {
    bulk(argument(0), argument(1), argument(2), argument(3), k.i32(0));
  } else if (name == "bulk.shared.cta.to.global") {
    k.call("bulk.store",
           {argument(0), argument(1), argument(2), target(argument(0), 16), source(argument(1), 16)});
  } else if (name != "bulk.commit.group" && !name.starts_with("bulk.wait.group") &&
             !name.starts_with("bulk.prefetch")) {
    return false;  // the three wait for copies, which complete at once here
  }
  k.replace(call, nullptr);
  return true;
}

//===-- Addresses, and what is not NVVM's -------------------------------------------------------===//

static bool rewriteAddress(Kernel& k, CallInst& call, StringRef name) {
  IRBuilder<>& b = k.builder;
  if (name.starts_with("mapa")) {
    Value* p = k.call("mapa", b.getPtrTy(), {call.getArgOperand(0), call.getArgOperand(1), k.site(call)});
    return k.replace(call, b.CreateAddrSpaceCast(p, call.getType())), true;
  }
  if (name.starts_with("getctarank"))
    return k.replace(call, k.call("rankof", b.getInt32Ty(), {call.getArgOperand(0), k.site(call)})), true;
  if (name.consume_front("isspacep.")) {
    uint32_t space = StringSwitch<uint32_t>(name)
                         .Case("global", Space::Global)
                         .Case("shared", Space::Shared)
                         .Case("local", Space::Local)
                         .Case("shared.cluster", Space::Distributed)
                         .Default(Space::Constant);
    return k.replace(call, k.callBool("isspace", {call.getArgOperand(0), k.i32(space)})), true;
  }
  if (name == "is_explicit_cluster")
    return k.replace(call, b.CreateICmpUGT(k.sreg(ClusterNctarank), k.i32(1))), true;
  return false;
}

static void rewriteAssume(Kernel& k, CallInst& call) {
  IRBuilder<>& b = k.builder;
  k.call("assume", {call.getArgOperand(0), k.site(call)});
  for (unsigned i = 0; i < call.getNumOperandBundles(); ++i) {
    OperandBundleUse bundle = call.getOperandBundleAt(i);
    if (bundle.getTagName() != "align") continue;
    Value* offset = bundle.Inputs.size() > 2 ? b.CreateZExt(bundle.Inputs[2], b.getInt64Ty()) : b.getInt64(0);
    k.call("aligned",
           {bundle.Inputs[0], b.CreateZExt(bundle.Inputs[1], b.getInt64Ty()), offset, k.site(call)});
  }
  k.replace(call, nullptr);
}

bool rewriteIntrinsic(Kernel& k, CallInst& call) {
  StringRef name = call.getCalledFunction()->getName();
  switch (call.getIntrinsicID()) {
    case Intrinsic::assume:
      return rewriteAssume(k, call), true;
    case Intrinsic::trap:
    case Intrinsic::debugtrap:
    case Intrinsic::ubsantrap:
      k.call("fault", {k.builder.CreateGlobalString("the kernel has reached a trap"), k.site(call)});
      return k.replace(call, nullptr), true;
    default:
      break;
  }
  if (!name.consume_front("llvm.nvvm.")) {
    if (Intrinsic::isTargetIntrinsic(call.getIntrinsicID()))
      k.refuse(call, "this intrinsic of another target is not emulated");
    else if (call.mayReadOrWriteMemory() && !call.onlyAccessesInaccessibleMemory() &&
             !call.isLifetimeStartOrEnd() && !isa<DbgInfoIntrinsic>(call))
      k.refuse(call, "this intrinsic touches memory and is not emulated");
    return false;
  }
  if (rewriteSreg(k, call, name) || rewriteShuffle(k, call, name) || rewriteVote(k, call, name) ||
      rewriteRedux(k, call, name) || rewriteBarrier(k, call, name) || rewriteMbarrier(k, call, name) ||
      rewriteCopies(k, call, name) || rewriteAddress(k, call, name) || rewriteMath(k, call, name))
    return true;
  k.refuse(call, "this intrinsic is not emulated");
  return true;
}

}  // namespace normc::emulator
