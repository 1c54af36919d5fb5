// Kernels with one mistake as implementers make them: an operation of the plan is changed, then it is
// compiled as any other.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/dialect/Norm.h"
#include "tests/end_to_end/Compiled.h"

namespace normc {

/// A mistake that a plan can have.
struct Mistake {
  std::string kind;             ///< as a fact: "AddedIsSubtracted"
  std::string where;            ///< the operation, as text
  std::function<void()> plant;  ///< changes the plan; the other mistakes of its list are then invalid
};

/// Returns the mistakes of the plan of a norm, in an order that depends on the plan alone. None changes which
/// memory is read or written.
std::vector<Mistake> mistakesOf(codegen::KernelOp, const Spec&);

/// Returns the kinds of the mistakes of the problem's plan, in their order.
std::vector<std::string> kindsOfMistakes(const Problem&, codegen::Strategy);

/// Compiles the default schedule of the strategy for the instruction set at hand, with mistake `number` of
/// its plan. `where`: that mistake's.
std::unique_ptr<Compiled> compiledWithMistake(const Problem&, codegen::Strategy, size_t number,
                                              std::string& where);

}  // namespace normc
