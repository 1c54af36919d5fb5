#include <cmath>

#include "dsl/Numbers.h"
#include "dsl/ReferenceParts.h"

namespace normc::reference {
namespace {

Settings settingsOf(const Spec& spec, const std::map<std::string, double>& overrides) {
  std::map<std::string, double> values;
  for (const Number& number : numbers(spec)) values[number.name] = number.value;
  for (const auto& [name, value] : overrides) values[name] = value;

  Settings settings;
  const auto read = [&values](const char* name, double& target) {
    const auto found = values.find(name);
    if (found != values.end()) target = found->second;
  };
  read("epsilon", settings.epsilon);
  read("pre_epsilon", settings.preEpsilon);
  read("decay", settings.decay);
  read("backward_decay", settings.backwardDecay);
  read("warmup_steps", settings.warmupSteps);
  read("renorm_rmax", settings.renormMax);
  read("renorm_dmax", settings.renormShiftMax);
  read("renorm_start", settings.renormStart);
  read("scale_offset", settings.scaleOffset);
  read("mod_offset", settings.modOffset);
  read("quant_floor", settings.quantFloor);
  const auto clamp = values.find("clamp_gamma");
  if (clamp != values.end()) settings.clampGamma = clamp->second;
  return settings;
}

Values exactly(const std::map<std::string, std::vector<double>>& memory, const std::string& field) {
  Values out;
  const auto found = memory.find(field);
  if (found == memory.end()) return out;
  for (double value : found->second) out.push_back(exact(value));
  return out;
}

}  // namespace

int64_t elementsOf(TensorShape shape, const Problem& problem, const Extents& extents) {
  switch (shape) {
    case TensorShape::Elements:
      break;
    case TensorShape::PerFeature:
      return extents.features;
    case TensorShape::PerRow:
      return extents.totalRows();
    case TensorShape::PerSegment:
      return extents.segments * extents.features;
    case TensorShape::PerBlock:
      return extents.totalRows() *
             (problem.spec->quantize ? problem.spec->quantize->blocks(extents.features) : 1);
    case TensorShape::PerPair:
      return extents.totalRows() * problem.pairs(extents.features);
    case TensorShape::One:
      return 1;
  }
  return extents.totalRows() * extents.features;
}

Call::Call(const Problem& problem, const ReferenceCall& given)
    : problem(problem),
      spec(*problem.spec),
      given(given),
      has(hasOf(problem)),
      types(problem.types()),
      settings(settingsOf(spec, given.numbers)),
      rows(given.extents.totalRows()),
      features(given.extents.features),
      groups(problem.groups(spec.groups)),
      preGroups(spec.pre ? problem.groups(spec.pre->groups) : 1),
      runs(spec.rope ? problem.groups(spec.rope->groups) : 1),
      wide_(problem.statistics() == DType::F64) {
  if (isOverRanks(problem.entry) && given.saved.contains("count")) {
    realRows_ = static_cast<int64_t>(given.saved.at("count")[0]);
  } else if (addsPartials(problem.entry)) {
    for (const auto& partial : given.partials) realRows_ += static_cast<int64_t>(partial.at("rows")[0]);
  } else {
    for (int64_t row = 0; row < rows; ++row) realRows_ += real(row);
  }
}

// A wider type is rounded, and a number that is subnormal in a narrower one may be read as zero.
Tracked Call::converted(double value, DType type) const {
  const Tracked input = exact(value);
  if (wide_ && type != DType::F64 && value != 0 && std::abs(value) < kSmallestNormal)
    return {value, input.magnitude + kSmallestNormal / unit()};
  return !wide_ && type == DType::F64 ? rounded(input) : input;
}

int64_t Call::statistics() const {
  switch (spec.reduce) {
    case Reduce::Rows:
      return features;
    case Reduce::Features:
      return rows * groups;
    case Reduce::Segment:
      return given.extents.segments * features;
    case Reduce::SegmentFeatures:
      return given.extents.segments * groups;
  }
  return 0;
}

int64_t Call::statistic(int64_t row, int64_t feature) const {
  const int64_t group = feature / (features / groups);
  switch (spec.reduce) {
    case Reduce::Rows:
      return feature;
    case Reduce::Features:
      if (problem.layout == Layout::ChannelsFirst)
        return (row / given.extents.rows * groups + group) * given.extents.rows + row % given.extents.rows;
      return row * groups + group;
    case Reduce::Segment:
      return row / given.extents.rows * features + feature;
    case Reduce::SegmentFeatures:
      return row / given.extents.rows * groups + group;
  }
  return 0;
}

int64_t Call::elements(Tensor tensor) const {
  return elementsOf(shapeOf(tensor, has), problem, given.extents);
}

int64_t Call::index(Tensor tensor, At at) const {
  switch (shapeOf(tensor, has)) {
    case TensorShape::Elements:
      break;
    case TensorShape::PerFeature:
      return at.feature;
    case TensorShape::PerRow:
      return at.row;
    case TensorShape::PerSegment:
      return at.row / given.extents.rows * features + at.feature;
    case TensorShape::PerBlock: {
      const int64_t blocks = spec.quantize->blocks(features);
      return at.row * blocks + at.feature / (features / blocks);
    }
    case TensorShape::PerPair: {
      const int64_t pairs = problem.pairs(features), ofRun = at.feature % (features / runs);
      return at.row * pairs + (spec.rope->pairs == Pairs::Half ? ofRun % pairs : ofRun / 2);
    }
    case TensorShape::One:
      return 0;
  }
  return at.element;
}

Values Call::state(const std::string& field) const { return exactly(given.state, field); }
Values Call::saved(const std::string& field) const { return exactly(given.saved, field); }

}  // namespace normc::reference
