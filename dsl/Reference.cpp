#include "dsl/Reference.h"

#include "dsl/ReferenceParts.h"

namespace normc {

Result<ReferenceResult> evaluate(const Problem& problem, const ReferenceCall& given) {
  std::vector<Diagnostic> errors = reference::errorsOf(problem, given);
  if (!errors.empty()) return errors;
  const reference::Call call(problem, given);
  switch (problem.entry) {
    case Entry::Forward:
      return ReferenceResult{reference::forward(call)};
    case Entry::Backward:
    case Entry::InferBackward:
      return ReferenceResult{reference::backward(call)};
    case Entry::Infer:
      break;
    case Entry::ForwardReduce:
      return ReferenceResult{reference::forwardReduce(call)};
    case Entry::ForwardApply:
      return ReferenceResult{reference::forward(call)};
    case Entry::BackwardReduce:
    case Entry::BackwardApply:
      return ReferenceResult{reference::backward(call)};
    case Entry::Commit:
      return ReferenceResult{reference::commit(call)};
  }
  return ReferenceResult{reference::infer(call)};
}

std::map<std::string, std::vector<double>> initialState(const Problem& problem, const Extents& extents) {
  std::map<std::string, std::vector<double>> state;
  for (const Field& field : stateFields(problem)) {
    state[field.name] = std::vector<double>(field.elements(extents), field.init);
  }
  return state;
}

}  // namespace normc
