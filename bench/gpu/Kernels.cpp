#include "bench/gpu/Kernels.h"

#include <stdexcept>

#include "dsl/Library.h"
#include "runtime/package/ManifestJson.h"

namespace normc::gpu {
namespace {

normc_context_options optionsOf(const std::string& driver) {
  normc_context_options options = {};
  options.cuda_library = driver.c_str();
  options.max_threads = 1;
  return options;
}

}  // namespace

Kernels::Kernels(const std::string& file, const std::string& driver, int device)
    : device_(device),
      context_(optionsOf(driver)),
      package_(context_, file),
      manifest_(package::wholeManifest(package_.manifest())) {
  for (const package::Norm& norm : manifest_.norms) {
    const auto specs = readNorms(norm.text, file + " (norm " + norm.name + ")");
    if (!specs) throw std::runtime_error(text(specs.errors()));
    if (!specs->empty()) norms_[norm.name] = specs->front();
  }
}

Problem Kernels::problem(const std::string& text) const {
  const auto find = [&](std::string_view name) -> Result<std::shared_ptr<const Spec>> {
    const auto at = norms_.find(name);
    if (at == norms_.end()) return Diagnostic{.message = "the package has no norm " + std::string(name)};
    return at->second;
  };
  auto problem = parseProblem(text, find);
  if (!problem) throw std::runtime_error(normc::text(problem.errors()));
  return *std::move(problem);
}

host::Plan Kernels::plan(const std::string& text, bool steady) const {
  normc_request request = host::onCuda(device_);
  request.steady = steady;
  return host::Plan(package_, text, request);
}

host::Plan Kernels::planOfOneKernel(const std::string& text) const {
  normc_request request = host::onCuda(device_);
  request.one_kernel = 1;
  return host::Plan(package_, text, request);
}

Traffic Kernels::traffic(size_t kernel) const {
  const package::Traffic& traffic = kernels().at(kernel).traffic;
  return {int(traffic.least()), int(traffic.writes)};
}

}  // namespace normc::gpu
