// Barriers of blocks, warps and clusters, fences, mbarriers, and addresses in a cluster.
#include "codegen/emulator/Site.h"
#include "codegen/emulator/ptx/Kernel.h"
#include "llvm/ADT/STLExtras.h"

namespace normc::emulator::ptx {

using namespace llvm;
using Value = llvm::Value;

/// `bar.sync 0;`, `barrier.sync 1, 64;`, `bar.red.popc.u32 d, 0, p;`
static void barrier(Kernel& k) {
  IRBuilder<>& b = k.b;
  const Statement& s = k.now();
  if (!k.knows(1, {"sync", "arrive", "red", "popc", "and", "or", "aligned", "cta"})) return;
  const bool reduces = s.has("red");
  const size_t first = reduces ? 1 : 0, given = k.operands() - first - (reduces ? 1 : 0);
  Value* id = k.readBits(k.operand(first), 32);
  Value* count = given > 1 ? k.readBits(k.operand(first + 1), 32) : k.i32(0);
  if (!reduces) {
    k.call(s.has("arrive") ? "barrier.arrive" : "barrier", {id, count, k.site()});
    return;
  }
  Value* vote = k.readPredicate(k.operand(k.operands() - 1));
  if (s.has("and")) return k.write(k.operand(0), k.callBool("barrier.all", {id, count, vote, k.site()}));
  Value* votes = k.call("barrier.count", b.getInt32Ty(), {id, count, vote, k.site()});
  k.write(k.operand(0), s.has("popc") ? votes : b.CreateICmpNE(votes, k.i32(0)));
}

static void mbarrier(Kernel& k) {
  IRBuilder<>& b = k.b;
  const Statement& s = k.now();
  if (!k.knows(1, {"init", "inval", "expect_tx", "complete_tx", "arrive", "arrive_drop", "noComplete",
                   "test_wait", "try_wait", "parity", "shared", "shared::cta", "shared::cluster", "acquire",
                   "release", "cta", "cluster"}))
    return;
  const StringRef action = s.words.size() > 1 ? StringRef(s.words[1]) : "";
  const bool arrives = action == "arrive" || action == "arrive_drop", tests = action.ends_with("_wait");
  const uint8_t space = s.has("shared::cluster")                  ? Space::Distributed
                        : s.has("shared") || s.has("shared::cta") ? Space::Shared
                                                                  : Space::Generic;
  // An arrival at another block's barrier has no result.
  const bool results = (arrives || tests) && k.operand(0).kind != Operand::Address;
  const size_t first = results ? 1 : 0;
  Value* pointer = k.address(k.operand(first), space);
  Value* site = k.site(pointer, 8, 8, Site::Read | (tests ? 0 : Site::Write) | Site::Strong);
  const auto in = [&] { return k.readBits(k.operand(first + 1), 32); };
  if (action == "init") return void(k.call("mbarrier.init", {pointer, in(), site}));
  if (action == "inval") return void(k.call("mbarrier.inval", {pointer, site}));
  if (action == "expect_tx" || action == "complete_tx") {
    Value* bytes = b.CreateZExt(in(), b.getInt64Ty());
    if (action == "complete_tx") bytes = b.CreateNeg(bytes);
    return void(k.call("mbarrier.expect", {pointer, bytes, site}));
  }
  if (arrives) {
    const bool expects = s.has("expect_tx");
    Value* count = expects || k.operands() <= first + 1 ? k.i32(1) : in();
    Value* bytes = expects ? in() : k.i32(0);
    Value* state = k.call("mbarrier.arrive", b.getInt64Ty(),
                          {pointer, count, bytes, b.getInt1(action == "arrive_drop"), site});
    if (results) k.write(k.operand(0), state);
    return;
  }
  if (!tests) return k.refuse("this mbarrier operation is not emulated");
  const bool parity = s.has("parity");
  Value* state = parity ? b.CreateZExt(in(), b.getInt64Ty()) : k.readBits(k.operand(first + 1), 64);
  k.write(k.operand(0), k.callBool("mbarrier.test", {pointer, state, b.getInt1(parity),
                                                     b.getInt1(action == "try_wait"), site}));
}

static void fence(Kernel& k) {
  const Statement& s = k.now();
  if (s.has("tensormap::generic")) return k.refuse("tensor maps are not emulated");
  // Within a block only barriers pass on what was written. Copies complete at once here, so there is nothing
  // to wait for between proxies.
  if (!s.has("proxy") && !s.has("mbarrier_init") && !s.has("cta")) k.call("fence", {});
}

bool synchronisation(Kernel& k) {
  IRBuilder<>& b = k.b;
  const Statement& s = k.now();
  const StringRef name = s.words[0];
  if (s.is({"bar", "warp", "sync"}))
    return k.call("warpsync", {k.readBits(k.operand(0), 32), k.site()}), true;
  if (s.is({"barrier", "cluster", "arrive"}))
    return k.call("cluster.arrive", {b.getInt1(s.has("relaxed")), k.site()}), true;
  if (s.is({"barrier", "cluster", "wait"})) return k.call("cluster.wait", {k.site()}), true;
  if (name == "bar" || name == "barrier") return barrier(k), true;
  if (name == "mbarrier") return mbarrier(k), true;
  if (name == "fence" || name == "membar") return fence(k), true;
  if (name == "nanosleep") return k.call("yield", {k.site()}), true;
  if (name == "trap") {
    k.call("fault", {b.CreateGlobalString("the kernel has reached a trap"), k.site()});
    return true;
  }
  if (name == "mapa") {
    Value* pointer = k.address(k.operand(1), s.has("shared::cluster") ? Space::Shared : Space::Generic);
    Value* mapped = k.call("mapa", b.getPtrTy(), {pointer, k.readBits(k.operand(2), 32), k.site()});
    return k.write(k.operand(0), b.CreatePtrToInt(mapped, b.getInt64Ty())), true;
  }
  if (name == "getctarank")
    return k.write(k.operand(0),
                   k.call("rankof", b.getInt32Ty(), {k.address(k.operand(1), Space::Generic), k.site()})),
           true;
  // They move nothing, or only between caches.
  return name == "prefetch" || name == "prefetchu" || name == "applypriority" || name == "griddepcontrol";
}

}  // namespace normc::emulator::ptx
