#include "bench/gpu/Kernels.h"

#include <stdexcept>

#include "dsl/Library.h"

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
      manifest_(Json::parse(package_.manifest())) {
  for (const Json& norm : manifest_.at("norms")) {
    const std::string name = norm.at("name");
    const auto specs = readNorms(norm.at("text").get<std::string>(), file + " (norm " + name + ")");
    if (!specs) throw std::runtime_error(text(specs.errors()));
    if (!specs->empty()) norms_[name] = specs->front();
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
  const Json& traffic = kernels().at(kernel).at("traffic");
  return {traffic.value("least_reads", traffic.at("reads").get<int>()), traffic.at("writes").get<int>()};
}

}  // namespace normc::gpu
