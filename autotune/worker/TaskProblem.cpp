#include "autotune/worker/TaskProblem.h"

#include "dsl/Library.h"

namespace normc::tune {

Result<Problem> problemOfTask(const std::string& spec, const std::string& problem) {
  const auto specs = readNorms(spec, "the norm of the task");
  if (!specs) return specs.errors();
  const auto find = [&](std::string_view name) -> Result<std::shared_ptr<const Spec>> {
    for (const auto& each : *specs)
      if (each->name == name) return each;
    return findNorm(name);
  };
  return parseProblem(problem, find);
}

}  // namespace normc::tune
