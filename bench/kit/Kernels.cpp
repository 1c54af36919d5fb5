#include "bench/kit/Kernels.h"

#include <algorithm>
#include <stdexcept>

#include "dsl/Library.h"
#include "runtime/package/ManifestJson.h"

namespace normc::bench {
namespace {

normc_context_options optionsFor(const std::string& driver) {
  normc_context_options options = {};
  options.cuda_library = driver.c_str();
  options.max_threads = 1;
  return options;
}

}  // namespace

Kernels::Kernels(From from, const std::string& source, const normc_context_options& options,
                 std::optional<int> device)
    : from_(from),
      source_(source),
      device_(device),
      context_(options),
      package_(from == From::File ? host::Package(context_, source)
                                  : host::Package(context_, source.data(), source.size())),
      manifest_(package::wholeManifest(package_.manifest())) {}

Kernels::Kernels(const std::string& file) : Kernels(From::File, file, {}, std::nullopt) {}

Kernels::Kernels(const std::string& file, const std::string& driver, int device)
    : Kernels(From::File, file, optionsFor(driver), device) {}

Kernels Kernels::ofBytes(const std::string& package) {
  return Kernels(From::Memory, package, {}, std::nullopt);
}

Kernels Kernels::onThreads(normc_parallel_for run, void* first) const {
  normc_context_options options = {};
  options.parallel_for = run;
  options.parallel_for_ctx = first;
  return Kernels(from_, source_, options, std::nullopt);
}

Problem Kernels::problem(const std::string& text) const {
  const auto find = [&](std::string_view name) -> Result<std::shared_ptr<const Spec>> {
    const auto norm = std::ranges::find(manifest_.norms, name, &package::Norm::name);
    if (norm == manifest_.norms.end())
      return Diagnostic{.message = "the package has no norm " + std::string(name)};
    const auto specs = readNorms(norm->text, "norm " + norm->name + " of the package");
    if (!specs) return specs.errors();
    return specs->front();
  };
  auto problem = parseProblem(text, find);
  if (!problem) throw std::runtime_error(normc::text(problem.errors()));
  return *std::move(problem);
}

host::Plan Kernels::plan(const std::string& problem, int threads) const {
  normc_request options = request();
  options.max_threads = threads;
  return host::Plan(package_, problem, options);
}

host::Plan Kernels::planOfOneKernel(const std::string& problem) const {
  normc_request options = request();
  options.one_kernel = 1;
  return host::Plan(package_, problem, options);
}

Traffic Kernels::traffic(size_t kernel) const {
  const package::Traffic& traffic = kernels().at(kernel).traffic;
  return {int(traffic.least()), int(traffic.writes)};
}

}  // namespace normc::bench
