// Asynchronous copies: cp.async, bulk copies, st.async.
#include "codegen/emulator/Site.h"
#include "codegen/emulator/ptx/Kernel.h"
#include "llvm/ADT/STLExtras.h"

namespace normc::emulator::ptx {

using namespace llvm;
using Value = llvm::Value;

static Value* target(Kernel& k, Value* pointer, uint64_t align) {
  return k.site(pointer, 0, align, Site::Write | Site::Copied);
}
static Value* source(Kernel& k, Value* pointer, uint64_t align) {
  return k.site(pointer, 0, align, Site::Read | Site::Copied);
}

/// `cp.async.cg.shared.global [to], [from], 16;`
static void copy(Kernel& k) {
  const Statement& s = k.now();
  if (!k.knows(2, {"ca", "cg", "shared", "shared::cta", "global", "L2::64B", "L2::128B", "L2::256B"})) return;
  const Operand& bytes = k.operand(2);
  const auto size = uint32_t(bytes.number);
  if (bytes.kind != Operand::Number) return k.refuse("a copy whose size is no number");
  if (size != 16 && !(s.has("ca") && (size == 4 || size == 8)))
    return k.refuse("a cp.async of " + Twine(size) + " bytes does not exist");
  Value *to = k.address(k.operand(0), Space::Shared), *from = k.address(k.operand(1), Space::Global);
  Value* given = k.operands() > 3 ? k.readBits(k.operand(3), 32) : k.i32(size);
  k.call("copy", {to, from, k.i32(size), given, target(k, to, size), source(k, from, size)});
}

/// `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [from], bytes, [mbarrier];`
static void copyInBulk(Kernel& k) {
  const Statement& s = k.now();
  const bool stores = s.is({"cp", "async", "bulk", "global"});
  const bool between = s.is({"cp", "async", "bulk", "shared::cluster", "shared::cta"});
  const bool loads = s.is({"cp", "async", "bulk", "shared::cluster", "global"}) ||
                     s.is({"cp", "async", "bulk", "shared::cta", "global"});
  if (!stores && !between && !loads) return k.refuse("this bulk copy is not emulated");
  if (!k.knows(3, {"shared::cluster", "shared::cta", "global", "mbarrier::complete_tx::bytes", "bulk_group",
                   "multicast::cluster"}))
    return;
  Value* to = k.address(k.operand(0), stores ? Space::Global : Space::Distributed);
  Value* from = k.address(k.operand(1), loads ? Space::Global : Space::Shared);
  Value* bytes = k.readBits(k.operand(2), 32);
  if (stores) {
    k.call("bulk.store", {to, from, bytes, target(k, to, 16), source(k, from, 16)});
    return;
  }
  Value* barrier = k.address(k.operand(3), between ? Space::Distributed : Space::Shared);
  Value* blocks =
      s.has("multicast::cluster") ? k.b.CreateZExt(k.readBits(k.operand(4), 16), k.b.getInt32Ty()) : k.i32(0);
  k.call("bulk", {to, barrier, from, bytes, blocks, target(k, to, 16), source(k, from, 16)});
}

/// `st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [to], {...}, [mbarrier];`
static void storeAsync(Kernel& k) {
  const Statement& s = k.now();
  if (!s.has("shared::cluster") || !s.has("mbarrier::complete_tx::bytes") || s.types.size() != 1)
    return k.refuse("this st.async is not emulated");
  if (!k.knows(2, {"weak", "shared::cluster", "mbarrier::complete_tx::bytes", "v2", "v4"})) return;
  const Operand& list = k.operand(1);
  const auto sources = list.kind == Operand::List ? ArrayRef(list.elements) : ArrayRef(list);
  const unsigned count = s.has("v2") ? 2 : s.has("v4") ? 4 : 1;
  if (sources.size() != count) return k.refuse("a list of other than " + Twine(count) + " registers");
  Value *to = k.address(k.operand(0), Space::Distributed),
        *barrier = k.address(k.operand(2), Space::Distributed);
  const uint64_t each = s.types[0].bits / 8;
  for (auto [i, from] : enumerate(sources)) {
    Value* at = k.b.CreateConstGEP1_64(k.b.getInt8Ty(), to, each * i);
    Value* value = k.b.CreateZExt(k.readBits(from, s.types[0].bits), k.b.getInt64Ty());
    Value* site = k.site(at, each, i ? each : each * count, Site::Write | Site::Copied);
    k.call("store.async", {at, barrier, value, k.i32(uint32_t(each)), site});
  }
}

bool copyOperation(Kernel& k) {
  const Statement& s = k.now();
  if (s.is({"st", "async"})) return storeAsync(k), true;
  if (!s.is({"cp", "async"})) return false;
  if (s.is({"cp", "async", "commit_group"})) return k.call("copy.commit", {}), true;
  if (s.is({"cp", "async", "wait_all"})) return k.call("copy.waitall", {}), true;
  if (s.is({"cp", "async", "wait_group"})) return k.call("copy.wait", {k.readBits(k.operand(0), 32)}), true;
  if (s.is({"cp", "async", "mbarrier", "arrive"})) {
    Value* barrier = k.address(k.operand(0), Space::Shared);
    Value* site = k.site(barrier, 8, 8, Site::Read | Site::Write | Site::Strong);
    return k.call("copy.arrive", {barrier, k.b.getInt1(s.has("noinc")), site}), true;
  }
  // These wait for bulk copies, which complete at once here, or fetch into a cache.
  if (s.is({"cp", "async", "bulk", "commit_group"}) || s.is({"cp", "async", "bulk", "wait_group"}) ||
      s.is({"cp", "async", "bulk", "prefetch"}))
    return true;
  if (s.is({"cp", "async", "bulk"})) return copyInBulk(k), true;
  return copy(k), true;
}

}  // namespace normc::emulator::ptx
