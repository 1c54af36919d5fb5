// The keys of a manifest in the order in which they are written: one description for the writer and the
// reader (runtime/package/ManifestJson.cpp). Functions of an archive `ar`:
//
// - ar(key, value, rule): the key is required.
// - later: always written, an absent value as null. Older packages lack it; then the value is unchanged.
// - maybe: left out if the value is absent, empty, zero, false or not finite.
// - group(key, body): an object without a struct of its own.
//
// kForPeople is false in the runtime: it skips the keys that are only for people.
#pragma once

#include <numeric>
#include <type_traits>

#include "runtime/abi/CudaLimits.h"
#include "runtime/abi/Manifest.h"

namespace normc::package {

/// Rules for a value. A list of enumerators or words is a rule too: the value must be one of them.
struct Whole {
  int64_t least = 0, most = kHuge;
};
/// A list has at most this many elements.
struct Most {
  size_t count;
};

/// A reference to it is const for an archive that writes.
template <typename Ar, typename T>
using For = std::conditional_t<Ar::kReads, T, const T>;

inline constexpr size_t kMaxBlobs = 1 << 16, kMaxNorms = 1 << 12, kMaxKernels = 1 << 18, kMaxLines = 1 << 12;
// Limits of a launch, beside those of any CUDA device (CudaLimits.h).
inline constexpr int64_t kMaxCooperative = 1 << 16, kMaxLeast = 1 << 16,
                         kMaxShared = limits::sharedOfBlock(90);

template <typename Ar>
void describe(Ar& ar, For<Ar, Operand>& o) {
  ar("role", o.role, kRoles);
  ar("name", o.name);
  ar("type", o.type, kAllTypes);
  ar("access", o.access, kAccesses);
  if (o.hasShape()) ar("shape", o.shape, Most{kMaxDimensions});
}

template <typename Ar>
void describe(Ar& ar, For<Ar, Scalar>& s) {
  ar("name", s.name);
  ar("value", s.value);
  ar.maybe("least", s.legal.least);
  ar.maybe("above", s.legal.above);
  ar.maybe("below", s.legal.below);
  ar.maybe("whole", s.legal.whole);
}

template <typename Ar>
void describe(Ar& ar, For<Ar, Field>& f) {
  ar("name", f.name);
  ar("type", f.type, kFieldTypes);
  ar("shape", f.shape, Most{kMaxDimensions});
  ar.later("init", f.init);
}

template <typename Ar>
void describe(Ar& ar, For<Ar, Launch>& l) {
  ar("threads", l.threads, Whole{1, limits::kBlockThreads});
  ar("columns", l.columns, Whole{0, 1 << 30});
  ar("cluster", l.cluster, Whole{1, limits::kCluster});
  ar.later("cooperative", l.cooperative, Whole{1, kMaxCooperative});
  ar("shared", l.shared, Whole{0, kMaxShared});
  ar.later("least", l.least, Whole{0, kMaxLeast});
  ar.later("dependent", l.dependent);
}

template <typename Ar>
void describe(Ar& ar, For<Ar, Resources>& r) {
  ar("registers", r.registers, Whole{});
  ar("shared", r.shared, Whole{});
  ar("spills", r.spills, Whole{});
  ar("blocks", r.blocks, Whole{});
  ar.later("clusters", r.clusters, Whole{});
}

template <typename Ar>
void describe(Ar& ar, For<Ar, Phase>& p) {
  ar("symbol", p.symbol);
  ar("role", p.role, kPhaseRoles);
  ar("units", p.units, Most{kMaxDimensions});
  ar("min_units", p.minUnits, Whole{1});
  ar("multiple", p.multiple, Whole{1, 1 << 30});
  ar("max_chunks", p.maxChunks, Whole{1, limits::kChunks});
  ar("when", p.when, kWhens);
  ar.maybe("weight", p.weight, Most{kMaxDimensions});
  ar.maybe("enough_units", p.enoughUnits, Whole{p.minUnits});
  ar.maybe("by_segment", p.bySegment);
  ar.maybe("group", p.group, Whole{p.multiple, 1 << 30});
  if (Ar::kForPeople) ar.maybe("resources", p.resources);
  ar.maybe("launch", p.launch);
  if (p.launch) ar.later("unaligned", p.unaligned);
}

template <typename Ar>
void describe(Ar& ar, For<Ar, Traffic>& t) {
  ar("reads", t.reads, Whole{});
  ar("writes", t.writes, Whole{});
  ar.maybe("least_reads", t.leastReads, Whole{});
  ar.maybe("held_rows", t.heldRows, Whole{});
}

template <typename Ar>
void describe(Ar& ar, For<Ar, Limits>& l) {
  ar.later("rows_min", l.rowsMin, Whole{});
  ar.later("rows_max", l.rowsMax, Whole{l.rowsMin});
  ar.later("run_min", l.runMin, Whole{});
  ar.later("run_max", l.runMax, Whole{l.runMin});
}

/// Returns the least common multiple of all group counts. Packages older than `features_multiple` only have
/// bindings, all of which are group counts.
inline int64_t multipleOf(const std::map<std::string, int64_t>& bindings) {
  int64_t multiple = 1;
  for (const auto& [name, groups] : bindings) multiple = commonMultiple({multiple, groups});
  return multiple;
}

template <typename Ar>
void describe(Ar& ar, For<Ar, Kernel>& k) {
  ar("problem", k.problem);
  ar("norm", k.norm, Whole{});
  ar("entry", k.parts.entry, kEntries);
  ar("data", k.parts.data, kFloatTypes);
  ar("params", k.parts.params, kFloatTypes);
  ar.maybe("output", k.parts.output, kFloatTypes);
  ar.maybe("rounds_normalized", k.parts.roundsNormalized);
  ar.maybe("stream", k.parts.stream, kFloatTypes);
  ar("layout", k.parts.layout, kLayouts);
  ar("mask", k.parts.mask);
  ar("segmented", k.parts.segmented);
  ar.later("features", k.parts.features, Whole{1});
  ar("bindings", k.parts.bindings, Whole{1});
  ar.later("limits", k.limits);
  ar("blob", k.blob, Whole{});
  ar("device", k.device);
  ar("isa", k.isa);
  ar.maybe("core", k.core);
  ar("generator", k.generator);
  ar("schedule", k.schedule);
  ar("origin", k.origin);
  ar("operands", k.operands, Most{kMaxOperands});
  ar.maybe("ignored", k.ignored, Most{kTensorCount});
  ar.maybe("same", k.same);
  ar("scalars", k.scalars, Most{kMaxScalars});
  ar("state", k.state, Most{kMaxFields});
  ar("saved", k.saved, Most{kMaxFields});
  ar.maybe("partial", k.partial, Most{kMaxFields});
  ar("phases", k.phases, Most{kMaxPhases});
  if (Ar::kForPeople)
    ar.group("traffic", [&](auto& traffic) {
      describe(traffic, k.traffic);
      traffic.maybe("warmup", k.warmupTraffic);
    });
  if constexpr (Ar::kReads)
    if (!k.parts.features) k.featuresMultiple = multipleOf(k.parts.bindings);
  if (!k.parts.features) ar.later("features_multiple", k.featuresMultiple, Whole{1});
  ar.maybe("block", k.block, Whole{0});
  ar.maybe("runs", k.runs, Whole{0});
  ar.maybe("turned", k.turned, Whole{0});
  if (Ar::kForPeople) ar.maybe("selection", k.selection, Most{kMaxLines});
  if (k.onCuda()) {
    ar.later("cubin", k.cubin, Whole{});
    ar("alignment", k.alignment, Whole{0, kAlignment});
  }
}

template <typename Ar>
void describe(Ar& ar, For<Ar, Blob>& b) {
  ar("sha256", b.sha256);
  ar("offset", b.offset, Whole{int64_t(kAlignment)});
  ar("bytes", b.bytes, Whole{1});
  ar("kind", b.kind);
  ar("isa", b.isa);
}

template <typename Ar>
void describe(Ar& ar, For<Ar, Norm>& n) {
  ar("name", n.name);
  ar("hash", n.hash);
  if (Ar::kForPeople) ar("text", n.text);
}

template <typename Ar>
void describe(Ar& ar, For<Ar, Manifest>& m) {
  ar("schema", m.schema, Whole{1});
  ar("abi", m.abi, Whole{1});
  if (Ar::kForPeople) ar("producer", m.producer);
  ar("blobs", m.blobs, Most{kMaxBlobs});
  ar("norms", m.norms, Most{kMaxNorms});
  ar("kernels", m.kernels, Most{kMaxKernels});
}

}  // namespace normc::package
