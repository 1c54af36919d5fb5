#include "bench/Ours.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "codegen/Package.h"
#include "runtime/package/ManifestJson.h"

namespace normc::bench {
namespace {

template <typename T>
T orThrow(llvm::Expected<T> value) {
  if (!value) throw std::runtime_error(llvm::toString(value.takeError()));
  return std::move(*value);
}

/// A plan for the problem that leaves the number of threads to `threads`.
host::Plan planFor(const Kernels& kernels, const Problem& problem, const Shape& shape, int threads) {
  normc_request request = {};
  request.max_threads = threads;
  return host::Plan(kernels.package(), problem.text(shape.segments, shape.rows), request);
}

Buffers buffersFor(const Kernels& kernels, const Problem& problem, const Tensors& tensors, int threads) {
  const Shape& shape = tensors.shape;
  Buffers buffers(planFor(kernels, problem, shape, threads), problem,
                  {shape.segments, shape.rows, shape.features}, tensors);
  if (problem.entry == Entry::Backward) {
    Problem forward = problem;
    forward.entry = Entry::Forward;
    buffers.saveFrom(planFor(kernels, forward, shape, 0));
  }
  return buffers;
}

}  // namespace

Kernels Kernels::compile(const std::vector<Problem>& problems, const codegen::TargetPtr& target) {
  std::string bytes;
  const double seconds = timed(1, [&] {
    std::vector<codegen::Job> jobs;
    for (const Problem& problem : problems)
      for (codegen::Job& job : codegen::defaultJobs(problem, target)) jobs.push_back(std::move(job));
    bytes = orThrow(codegen::buildPackage(jobs));
  });
  return Kernels(std::move(bytes), seconds);
}

Kernels Kernels::compile(const std::vector<Problem>& problems) {
  return compile(problems, orThrow(codegen::findTarget("host")));
}

Kernels Kernels::read(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + file);
  return Kernels(std::string(std::istreambuf_iterator<char>(stream), {}), 0);
}

Kernels::Kernels(std::string bytes, double seconds)
    : seconds_(seconds), package_(context_, bytes.data(), bytes.size()) {}

Traffic Kernels::traffic(const host::Plan& plan) const {
  const package::Traffic traffic =
      package::wholeManifest(package_.manifest()).kernels.at(plan.kernel()).traffic;
  return {int(traffic.reads), int(traffic.writes)};
}

Ours::Ours(const Kernels& kernels, const Problem& problem, const Tensors& tensors, int threads)
    : buffers_(buffersFor(kernels, problem, tensors, threads)),
      subject_(planFor(kernels, problem, tensors.shape, threads), buffers_) {}

}  // namespace normc::bench
