#include <algorithm>
#include <cmath>

#include "dsl/Numbers.h"
#include "dsl/ReferenceParts.h"

namespace normc::reference {
namespace {

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

// Collects the errors in the lengths of a call's arguments.
class Checker {
 public:
  Checker(const Problem& problem, const ReferenceCall& call) : problem_(problem), call_(call) {}

  std::vector<Diagnostic> run() {
    extents();
    if (!errors_.empty()) return errors_;  // every other length depends on the extents
    for (const TensorInfo& each : kTensorTable)
      if (!each.written(Entry::Forward) || !each.written(Entry::Backward)) input(each);
    fields("state", stateFields(problem_), call_.state);
    if (readsSaved(problem_.entry)) fields("saved", savedFields(problem_), call_.saved);
    partials();
    givenScale();
    if (errors_.empty()) steps();
    overrides();
    return errors_;
  }

 private:
  void addError(std::string message, std::string hint = {}) {
    Diagnostic error;
    error.message = std::move(message);
    error.hint = std::move(hint);
    errors_.push_back(std::move(error));
  }

  void extents() {
    const Extents& e = call_.extents;
    if (e.segments < 0 || e.rows < 0 || e.features < 1) {
      addError("extents of " + std::to_string(e.segments) + " segments, " + std::to_string(e.rows) +
                   " rows and " + std::to_string(e.features) + " features are not a shape",
               "segments and rows are 0 or more, features 1 or more");
      return;
    }
    if (problem_.features && *problem_.features != e.features) {
      addError("the call has " + std::to_string(e.features) + " features, the problem " +
               std::to_string(*problem_.features));
    }
    divides(problem_.groups(problem_.spec->groups), "groups");
    if (problem_.spec->pre) divides(problem_.groups(problem_.spec->pre->groups), "groups of pre");
    if (const auto& rope = problem_.spec->rope) {
      const int64_t multiple = 2 * problem_.groups(rope->groups);
      if (e.features % multiple != 0)
        addError(std::to_string(e.features) + " features are no multiple of " + std::to_string(multiple) +
                 ": rope turns pairs");
    }
    const auto& quantize = problem_.spec->quantize;
    if (quantize && quantize->per == QuantizePer::Block && e.features % quantize->size != 0)
      addError(std::to_string(e.features) + " features do not divide into blocks of " +
               std::to_string(quantize->size));
  }

  void divides(int64_t groups, const char* what) {
    if (call_.extents.features % groups == 0) return;
    addError(std::to_string(groups) + " " + what + " do not divide " +
             std::to_string(call_.extents.features) + " features");
  }

  void input(const TensorInfo& info) {
    const std::vector<double>* values = valuesOf(call_, info.tensor);
    const size_t got = values ? values->size() : call_.mask.size();
    const Has has = hasOf(problem_);
    bool taken = isTaken(info, problem_.entry, has) && !info.written(problem_.entry);
    // An input that only the forward reads may come along in the backward.
    if (got > 0 && isBackward(problem_.entry) && info.mayBeIgnored()) {
      taken |= isTaken(info, Entry::Forward, has);
    }
    if (got == 0 && !isNeeded(info)) return;
    const TensorShape shape = shapeOf(info.tensor, has);
    length(std::string(info.name), got, taken ? elementsOf(shape, problem_, call_.extents) : 0,
           textOf(shape));
  }

  // False for an input that may be left out: what the entry computes does not depend on it.
  bool isNeeded(const TensorInfo& info) const {
    const Spec& spec = *problem_.spec;
    if (info.mayBeLeftOut()) return false;
    if (!isBackward(problem_.entry)) return true;
    switch (info.tensor) {
      case kX:
        return !spec.hasStream() || spec.hasGate(Side::Before);
      case kResidual:
        return spec.hasResidual(Side::After) ? spec.activation != Activation::None : !spec.hasStream();
      case kModShift:
        return spec.activation != Activation::None || spec.hasGate(Side::After);
      default:
        return true;
    }
  }

  static const char* textOf(TensorShape shape) {
    switch (shape) {
      case TensorShape::Elements:
        break;
      case TensorShape::PerFeature:
        return "[features]";
      case TensorShape::PerRow:
        return "[segments, rows]";
      case TensorShape::PerSegment:
        return "[segments, features]";
      case TensorShape::PerBlock:
        return "[segments, rows, blocks]";
      case TensorShape::PerPair:
        return "[segments, rows, pairs]";
      case TensorShape::One:
        return "[1]";
    }
    return "[segments, rows, features]";
  }

  void length(const std::string& what, size_t got, int64_t want, const char* shape) {
    if (static_cast<int64_t>(got) == want) return;
    addError(what + " has " + std::to_string(got) + " elements, not " + std::to_string(want),
             want == 0 ? problem_.text() + " takes no " + what : what + " is " + shape);
  }

  void fields(const std::string& memory, const std::vector<Field>& wanted,
              const std::map<std::string, std::vector<double>>& given) {
    for (const Field& field : wanted) {
      const std::string what = memory + "." + field.name;
      const auto found = given.find(field.name);
      if (found == given.end()) {
        addError(what + " is missing",
                 problem_.spec->name + " needs it in " + std::string(name(problem_.entry)));
      } else {
        length(what, found->second.size(), field.elements(call_.extents), "laid out as in dsl/StateFields.h");
      }
    }
  }

  void partials() {
    const bool adds = addsPartials(problem_.entry);
    if (adds == call_.partials.empty())
      addError(adds ? "partials are missing" : "partials are given",
               problem_.text() + (adds ? " adds up one or more" : " takes none"));
    for (const auto& each : call_.partials) fields("partials", partialFields(problem_), each);
  }

  void givenScale() {
    if (call_.quantScale.size() != 1) return;  // not taken, or reported
    const double scale = call_.quantScale[0];
    if (!(scale > 0) || std::isinf(scale))
      addError("quant_scale is " + std::to_string(scale) + ", which is no scale", "it is finite and above 0");
  }

  // A step that indexes rings must have been made.
  void steps() {
    const auto check = [this](const char* what, double step, double least) {
      if (step >= least && step <= kLargestWhole && step == std::floor(step)) return;
      addError(std::string(what) + " is " + std::to_string(step) + ", which is no number of steps");
    };
    const auto state = call_.state.find("step");
    if (!stateFields(problem_).empty()) check("state.step", state->second[0], 0);
    if (!readsSaved(problem_.entry)) return;
    const auto saved = call_.saved.find("step");
    const bool empty = problem_.mask && std::count(call_.mask.begin(), call_.mask.end(), 0) ==
                                            static_cast<int64_t>(call_.mask.size());
    for (const Field& field : savedFields(problem_)) {
      if (field.name == "step")
        check("saved.step", saved->second[0], empty || call_.extents.totalRows() == 0 ? 0 : 1);
    }
  }

  void overrides() {
    const std::vector<Number> known = numbers(*problem_.spec, problem_.statistics());
    for (const auto& [name, value] : call_.numbers) {
      const auto same = [&name = name](const Number& number) { return number.name == name; };
      if (std::any_of(known.begin(), known.end(), same)) continue;
      std::string names;
      for (const Number& number : known) names += (names.empty() ? "" : ", ") + number.name;
      addError(problem_.spec->name + " has no number " + name, "its numbers are " + names);
    }
  }

  const Problem& problem_;
  const ReferenceCall& call_;
  std::vector<Diagnostic> errors_;
};

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

std::vector<Diagnostic> errorsOf(const Problem& problem, const ReferenceCall& call) {
  return Checker(problem, call).run();
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
