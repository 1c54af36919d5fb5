#include "dsl/StateFields.h"

namespace normc {
namespace {

constexpr Extent kSegments{Extent::Segments, 1}, kRows{Extent::Rows, 1}, kFeatures{Extent::Features, 1};
Extent fixed(int64_t value) { return {Extent::Fixed, value}; }

// Returns the shape of a field with one entry for each statistic.
std::vector<Extent> statisticShape(const Problem& problem) {
  const Spec& spec = *problem.spec;
  switch (spec.reduce) {
    case Reduce::Rows:
      return {kFeatures};
    case Reduce::Features:
      if (problem.layout == Layout::ChannelsFirst)
        return {kSegments, fixed(problem.groups(spec.groups)), kRows};
      return {kSegments, kRows, fixed(problem.groups(spec.groups))};
    case Reduce::Segment:
      return {kSegments, kFeatures};
    case Reduce::SegmentFeatures:
      return {kSegments, fixed(problem.groups(spec.groups))};
  }
  return {};
}

TensorShape shapeOf(Per per) {
  switch (per) {
    case Per::Row:
      break;
    case Per::Segment:
      return TensorShape::PerSegment;
    case Per::Feature:
      return TensorShape::PerFeature;
  }
  return TensorShape::Elements;
}

bool windowedNu(const Spec& spec) {
  if (spec.backward != Backward::Approximate || spec.divideBy != DivideBy::Window) return false;
  return spec.approximate.nu != Nu::Feedback;
}

}  // namespace

Has hasOf(const Problem& problem) {
  const Spec& spec = *problem.spec;
  Has has{.scale = spec.scale,
          .bias = spec.bias,
          .mask = problem.mask,
          .recomputesOutput = spec.recomputesOutput(),
          .waits = spec.needsBatchStatistics(),
          .residual = spec.residual.has_value(),
          .residualBefore = spec.hasResidual(Side::Before),
          .stream = spec.hasStream()};
  // In front of the norm it is dx, but for a gate and for its type.
  const ElementTypes types = problem.types();
  const bool isDx = !spec.hasGate(Side::Before) && types.stream == types.data;
  // Behind the norm it is dy, but for rows that the padding leaves out, and for its type.
  const bool isDy = spec.activation == Activation::None && types.output == types.data &&
                    !(problem.mask && spec.padding == Padding::Exclude);
  has.ownResidualGradient = has.residualBefore ? !isDx : has.residual && !isDy;
  has.y = !spec.quantize;
  has.codes = !has.y;
  has.quantScale = spec.isQuantizedPer(QuantizePer::Tensor);
  has.quantScaleOut = has.codes && !has.quantScale;
  if (spec.gate) {
    has.gate = true;
    has.gateBefore = spec.hasGate(Side::Before);
    has.gateShape = shapeOf(spec.gate->per);
  }
  if (spec.modulate) {
    has.modScale = spec.modulate->scale;
    has.modShift = spec.modulate->shift;
    has.modulationShape = shapeOf(spec.modulate->per);
  }
  has.rope = spec.rope.has_value();
  return has;
}

std::vector<Tensor> operandsOf(const Problem& problem) { return operandsOf(problem.entry, hasOf(problem)); }

int64_t Extents::of(Extent e) const {
  switch (e.kind) {
    case Extent::Fixed:
      return e.value;
    case Extent::Segments:
      return segments;
    case Extent::Rows:
      return rows;
    case Extent::Features:
      return features;
  }
  return 0;
}

int64_t Field::elements(const Extents& extents) const {
  int64_t product = 1;
  for (Extent each : shape) product *= extents.of(each);
  return product;
}

int64_t Field::bytes(const Extents& extents) const { return elements(extents) * normc::bytes(type); }

std::vector<Field> stateFields(const Problem& problem) {
  const Spec& spec = *problem.spec;
  std::vector<Field> fields;
  if (!spec.running) return fields;
  const DType type = problem.statistics();
  const auto perFeature = [&](const char* name, double init) {
    fields.push_back({name, type, {kFeatures}, init});
  };
  const auto ring = [&](const char* name) {
    fields.push_back({name, type, {fixed(spec.window.size), kFeatures}, 0});
  };
  fields.push_back({"step", DType::I64, {}, 0});
  if (spec.center != Center::None) perFeature("running_mean", 0);
  if (spec.moment == Moment::Raw) {
    perFeature("psi2", spec.running->init);
  } else {
    perFeature(spec.renorm.kind == Renorm::Std ? "running_std" : "running_var", spec.running->init);
  }
  if (spec.divideBy == DivideBy::Window) ring("window_psi2");
  if (spec.backward == Backward::Approximate && spec.approximate.nu != Nu::Window) perFeature("nu", 0);
  if (windowedNu(spec)) ring("window_nu");
  return fields;
}

std::vector<Field> savedFields(const Problem& problem) {
  const Spec& spec = *problem.spec;
  const DType type = problem.statistics();
  const std::vector<Extent> shape = statisticShape(problem);
  const bool approximate = spec.backward == Backward::Approximate;
  // Gamma = q s^2 holds if the same rows enter both directions.
  const bool overRanks = isOverRanks(problem.entry);
  const bool gammaFromMoment =
      approximate && spec.approximate.nu == Nu::Feedback &&
      !((problem.mask || overRanks) && spec.padding == Padding::LeaveOutOfStatistics);

  std::vector<Field> fields;
  if (problem.entry == Entry::Commit) return fields;
  if (problem.entry == Entry::ForwardReduce && spec.needsBatchStatistics()) return fields;
  const bool late = overRanks && !spec.needsBatchStatistics();
  const auto add = [&](const char* name, bool present) {
    if (present) fields.push_back({name, type, shape, 0});
  };
  add("mean", spec.center != Center::None);
  add("rstd", true);
  add("batch_mean", spec.differentiatesMoment() && spec.moment == Moment::Central && !spec.momentIsOfX0());
  add("batch_rstd", spec.hasBatchScale());
  add("second_moment",
      (gammaFromMoment && !late) || (spec.differentiatesMoment() && spec.epsilonMode != EpsilonMode::Add));
  add("renorm_scale", spec.renorm.kind != Renorm::None);
  add("renorm_shift", spec.renorm.kind == Renorm::Std);
  if (spec.divideBy == DivideBy::Window || spec.renorm.kind != Renorm::None) {
    fields.push_back({"step", DType::I64, {}, 0});
  }
  if (overRanks ? !late : problem.mask && !spec.perRow()) {
    std::vector<Extent> counts;
    if (!spec.perFeature()) counts.push_back(kSegments);
    fields.push_back({"count", type, counts, 0});
  }
  return fields;
}

std::vector<Field> partialFields(const Problem& problem) {
  const Spec& spec = *problem.spec;
  std::vector<Field> fields;
  if (!isOverRanks(problem.entry)) return fields;
  const auto add = [&](const char* name, const std::vector<Extent>& shape, bool present) {
    if (present) fields.push_back({name, DType::F64, shape, 0});
  };
  if (!isBackward(problem.entry)) {
    add("rows", {}, true);
    add("sum", {kFeatures}, spec.center != Center::None || spec.moment == Moment::Central);
    add("squares", {kFeatures}, true);
  }
  if (!isBackward(problem.entry) && problem.entry != Entry::Commit) return fields;
  const bool centred = spec.center == Center::Current, approximate = spec.backward == Backward::Approximate;
  const bool feedback = approximate && spec.approximate.nu == Nu::Feedback;
  const bool sameRows = spec.padding == Padding::Exclude;
  add("gradient", {kFeatures}, centred && spec.backward != Backward::Frozen);
  add("gradient_x", {kFeatures}, approximate || spec.differentiatesMoment());
  add("energy", {kFeatures}, feedback && !(sameRows && spec.momentIsOfX0()));
  add("gradient_rows", {}, approximate && !sameRows);
  return fields;
}

}  // namespace normc
