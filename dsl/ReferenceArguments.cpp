#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "dsl/Numbers.h"
#include "dsl/ReferenceParts.h"

namespace normc {

// Null for a tensor without such values.
static constexpr auto kMembers = [] {
  std::array<std::vector<double> ReferenceCall::*, kTensorCount> members{};
  members[kX] = &ReferenceCall::x;
  members[kDy] = &ReferenceCall::dy;
  members[kScale] = &ReferenceCall::scale;
  members[kBias] = &ReferenceCall::bias;
  members[kResidual] = &ReferenceCall::residual;
  members[kResidualOut] = &ReferenceCall::residualOut;
  members[kGate] = &ReferenceCall::gate;
  members[kModScale] = &ReferenceCall::modScale;
  members[kModShift] = &ReferenceCall::modShift;
  members[kDresidualOut] = &ReferenceCall::dresidualOut;
  members[kQuantScale] = &ReferenceCall::quantScale;
  members[kRopeCos] = &ReferenceCall::ropeCos;
  members[kRopeSin] = &ReferenceCall::ropeSin;
  return members;
}();

const std::vector<double>* valuesOf(const ReferenceCall& call, Tensor input) {
  const auto member = kMembers[input];
  return member ? &(call.*member) : nullptr;
}

std::vector<double>* valuesOf(ReferenceCall& call, Tensor input) {
  const auto member = kMembers[input];
  return member ? &(call.*member) : nullptr;
}

namespace reference {
namespace {

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

}  // namespace

std::vector<Diagnostic> errorsOf(const Problem& problem, const ReferenceCall& call) {
  return Checker(problem, call).run();
}

}  // namespace reference
}  // namespace normc
