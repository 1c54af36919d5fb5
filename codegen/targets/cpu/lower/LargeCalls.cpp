// Large calls: steps that store whole cache lines past the caches.
#include "codegen/targets/cpu/lower/Sweep.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/SaveAndRestore.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace normc::codegen {

/// The fewest vectors of a step whose rows are stored one at a time with non-temporal stores.
static constexpr int64_t kStreamUnroll = 4;
/// The cache lines of the shortest row with a lead. A shorter row is little more than its lead and its rest.
static constexpr int64_t kLeastLines = 8;

/// Returns the vectors of a step in a large call, chosen so that steps fill a run: stores of a rest would not
/// be non-temporal while those of its neighbours are.
int64_t PhaseLowering::largeUnroll(int64_t rows) {
  int64_t least = cacheLineUnroll(), lanes = schedule_.getVector();
  if (f_.kernel().getRope()) least *= 2;  // each half of a step stores whole lines
  int64_t unroll = std::max(kStreamUnroll / rows, least);
  auto width = large_.leads && f_.featuresLast() ? std::nullopt : Loops::constant(runWidth());
  while (width && unroll > least && *width % (lanes * unroll)) unroll /= 2;
  return unroll;
}

/// Returns the vectors of a step that stores whole cache lines of every type.
int64_t PhaseLowering::cacheLineUnroll() {
  int64_t unroll = 1;
  for (TensorOp t : f_.kernel().getOps<TensorOp>())
    if (t.isXSized())
      unroll = std::max<int64_t>(
          unroll, kCacheLine * 8 / (schedule_.getVector() * t.getType().getIntOrFloatBitWidth()));
  return unroll;
}

/// Returns the bits of an element of the narrowest tensor.
static int64_t narrowest(ArrayRef<Operation*> tensors) {
  int64_t bits = 64;
  for (Operation* t : tensors)
    bits = std::min<int64_t>(bits, cast<TensorOp>(t).getType().getIntOrFloatBitWidth());
  return bits;
}

/// Outputs may be stored so if all are aligned to cache lines, in each group too. Rows that are known to
/// begin inside cache lines may have a lead.
PhaseLowering::LargeCall PhaseLowering::largeCall() {
  llvm::SetVector<Operation*> read, written;
  f_.phase()->walk([&](SweepOp sweep) {
    for (auto [names, to] : {std::pair(sweep.getReads(), &read), std::pair(sweep.getWrites(), &written)})
      for (auto name : names.getAsRange<FlatSymbolRefAttr>())
        if (TensorOp t = f_.tensor(name.getValue()); t.isXSized()) to->insert(t);
  });
  LargeCall call;
  if (read.empty()) return call;
  auto reaches = [&](Operation* tensor, StringRef number) -> Value {
    Value least = arith::FPToSIOp::create(l_.b, l_.loc, l_.b.getI64Type(), f_.scalar(number));
    least = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getIndexType(), least);
    return arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::sge, f_.bytesOf(cast<TensorOp>(tensor)),
                                 least);
  };
  call.is = reaches(read.front(), kLargeNumber);
  if (written.empty()) return call;
  call.nonTemporal = call.pastCaches = reaches(written.front(), kStreamNumber);
  for (Operation* t : written)
    call.nonTemporal = l_.both(call.nonTemporal, f_.isAligned(cast<TensorOp>(t), kCacheLine));
  const int64_t perLine = kCacheLine * 8 / narrowest(written.getArrayRef());
  auto onlyIfWhole = [&](Value elements) {
    Value part = l_.rem(elements, l_.index(perLine));
    if (auto known = Loops::constant(part); known && *known == 0) return;
    Value whole = arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::eq, part, l_.index(0));
    call.nonTemporal = l_.both(call.nonTemporal, whole);
  };
  // A task may begin inside a run, and so inside a cache line. So may a group, in a row that does not.
  if (takesChannels()) onlyIfWhole(segmentAndRow(begin_).second);
  for (auto slab : f_.phase().getOps<SlabOp>())
    if (f_.featuresLast() && groupsOf(slab) > 1) onlyIfWhole(f_.groupWidth(slab.groupAxis()));
  if (f_.kernel().getBlock()) onlyIfWhole(f_.blockWidth());
  call.leads = mayHaveLead(read.getArrayRef(), written.getArrayRef());
  if (!call.leads) return call;
  for (Operation* t : written.getArrayRef().drop_front())
    call.alike =
        l_.both(call.alike, f_.beginAlike(cast<TensorOp>(t), cast<TensorOp>(written[0]), kCacheLine));
  call.behindLead = l_.both(call.pastCaches, call.alike);
  if (!f_.featuresLast()) {  // runs may be short, or begin with a line
    Value isLong = l_.less(l_.index(kLeastLines * perLine - 1), f_.rows());
    call.behindLead = arith::OrIOp::create(l_.b, l_.loc, call.nonTemporal, l_.both(call.behindLead, isLong));
  }
  return call;
}

/// True if runs may begin inside cache lines, those of all outputs at the same place. Rows need a known
/// length. Without masks for narrow elements a lead would be a loop over elements.
bool PhaseLowering::mayHaveLead(ArrayRef<Operation*> read, ArrayRef<Operation*> written) {
  const Type type = cast<TensorOp>(written.front()).getType();
  const int64_t bits = type.getIntOrFloatBitWidth();
  if (std::min(narrowest(read), bits) < 32 && schedule_.getScalarTail()) return false;
  if (!llvm::all_of(written, [&](Operation* t) { return cast<TensorOp>(t).getType() == type; })) return false;
  if (!f_.featuresLast()) return true;
  const auto features = Loops::constant(f_.features());
  if (!features || f_.kernel().getBlock() || f_.kernel().getRope()) return false;
  const int64_t bytes = *features * bits / 8;
  return bytes % kCacheLine != 0 && bytes >= kLeastLines * kCacheLine &&
         llvm::all_of(f_.phase().getOps<SlabOp>(), [&](SlabOp s) { return groupsOf(s) == 1; });
}

int64_t PhaseLowering::largeRows(SlabOp slab) {
  const bool writes = llvm::any_of(slab.getOps<SweepOp>(), [](SweepOp s) { return !s.getWrites().empty(); });
  return large_.leads && f_.featuresLast() && writes ? 1 : schedule_.getStream();
}

Value PhaseLowering::leadOf(Sweep& s, ArrayRef<Replica> replicas, Value width) {
  const bool rows = f_.featuresLast();
  if (!large_.leads || !(rows || runsHaveLeads_) || !s.writesNow() || keeps_ || replicas.size() > 1)
    return {};
  TensorOp t = s.writes.front();
  const int64_t bits = t.getType().getIntOrFloatBitWidth();
  const bool sums = s.collects && !s.partials.empty(), fillsLines = bits >= 32 && cacheLineUnroll() == 1;
  if (!steps_.large && (sums || !fillsLines)) return {};
  Coordinates at = replicas.front().at;
  (rows ? at.feature : at.row) = runBegin_;
  Value address = f_.addressOf(t, f_.address(t, at));
  Value bytes = arith::AndIOp::create(l_.b, l_.loc, l_.sub(l_.index(0), address), l_.index(kCacheLine - 1));
  Value lead = l_.min(l_.div(bytes, l_.index(bits / 8)), width);
  const Value pays = !rows || sums ? large_.behindLead : large_.alike;
  return pays ? l_.select(pays, lead, l_.index(0)) : lead;
}

Values PhaseLowering::cutRuns(llvm::function_ref<void()> code, llvm::function_ref<void()> withLeads) {
  if (f_.featuresLast() || !steps_.large || !large_.leads) {
    code();
    return Values();
  }
  Value cut = l_.both(large_.behindLead, l_.isFalse(large_.nonTemporal));
  l_.when(cut, {}, [&] {
    llvm::SaveAndRestore leads(runsHaveLeads_, true);
    withLeads();
    return Values();
  });
  return l_.when(l_.isFalse(cut), {}, [&] {
    code();
    return Values();
  });
}

void PhaseLowering::Sweep::flushNonTemporal(AccessLowering& f, Loops& l, Value nonTemporal) {
  auto none = [] { return Values(); };
  auto all = pending;
  l.when(nonTemporal, {}, [&] {
    flush(f, true);
    return none();
  });
  pending = all;
  l.when(l.isFalse(nonTemporal), {}, [&] {
    flush(f);
    return none();
  });
}

/// Emits the stores of a step, as non-temporal ones where the `vectors` of a run fill cache lines.
void PhaseLowering::flush(Sweep& s, int64_t vectors) {
  const Value fills = s.hasLead ? large_.behindLead : large_.nonTemporal;
  if (steps_.large && fills && !s.stage && vectors % cacheLineUnroll() == 0 && s.writesNow())
    s.flushNonTemporal(f_, l_, fills);
  else
    s.flush(f_);
}

/// Non-temporal stores are weakly ordered, and the code after the task has to see them. The fence is executed
/// only after such stores, because it waits until all stores have left the core.
void PhaseLowering::orderStores() { LLVM::FenceOp::create(l_.b, l_.loc, LLVM::AtomicOrdering::seq_cst); }

}  // namespace normc::codegen
