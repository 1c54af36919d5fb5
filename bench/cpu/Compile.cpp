#include "bench/cpu/Compile.h"

#include <stdexcept>

#include "codegen/Package.h"

namespace normc::bench {
namespace {

template <typename T>
T orThrow(llvm::Expected<T> value) {
  if (!value) throw std::runtime_error(llvm::toString(value.takeError()));
  return std::move(*value);
}

}  // namespace

Kernels compile(const std::vector<Problem>& problems, const codegen::TargetPtr& target) {
  std::vector<codegen::Job> jobs;
  for (const Problem& problem : problems)
    for (codegen::Job& job : codegen::defaultJobs(problem, target)) jobs.push_back(std::move(job));
  return Kernels::ofBytes(orThrow(codegen::buildPackage(jobs)));
}

Kernels compile(const std::vector<Problem>& problems) {
  return compile(problems, orThrow(codegen::findTarget("host")));
}

}  // namespace normc::bench
