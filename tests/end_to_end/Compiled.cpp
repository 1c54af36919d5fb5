#include "tests/end_to_end/Compiled.h"

#include <gtest/gtest.h>

#include <map>

#include "dsl/Library.h"
#include "dsl/Print.h"

namespace normc {

Compiled::~Compiled() {
  normc_plan_destroy(large);
  normc_plan_destroy(plan);
  normc_package_destroy(package);
  normc_context_destroy(context);
}

codegen::cpu::Isa hostIsa() { return llvm::cantFail(codegen::cpu::findIsa("host")); }

Problem problemOf(const std::string& text) {
  auto problem = parseProblem(text, findNorm);
  if (!problem) {
    ADD_FAILURE() << normc::text(problem.errors());
    std::abort();
  }
  return *problem;
}

std::unique_ptr<Compiled> compiled(const Problem& problem, const codegen::cpu::Schedule& schedule,
                                   const codegen::cpu::Isa& isa, int threads) {
  return compiled(problem, llvm::cantFail(codegen::findTarget(isa.name)), schedule.text(), threads);
}

/// The package of one kernel. The last ones are kept: tests ask for a kernel once for each number of threads.
static llvm::Expected<std::string> packageOf(const Problem& problem, const codegen::TargetPtr& target,
                                             const std::string& schedule) {
  constexpr size_t kKept = 16;
  static std::map<std::string, std::string> kept;
  const std::string name = print(*problem.spec) + problem.text() + " " + target->name().str() + " " +
                           target->generator().str() + " " + schedule;
  if (auto found = kept.find(name); found != kept.end()) return found->second;
  auto bytes = codegen::buildPackage({{problem, target, schedule}}, {.threads = 1});
  if (!bytes) return bytes.takeError();
  if (kept.size() == kKept) kept.clear();
  return kept[name] = std::move(*bytes);
}

std::unique_ptr<Compiled> compiled(const Problem& problem, const codegen::TargetPtr& target,
                                   const std::string& schedule, int threads) {
  auto bytes = packageOf(problem, target, schedule);
  if (bytes) return opened(problem, *bytes, threads);
  auto result = std::make_unique<Compiled>();
  result->error = llvm::toString(bytes.takeError());
  return result;
}

std::unique_ptr<Compiled> opened(const Problem& problem, const std::string& package, int threads) {
  auto result = std::make_unique<Compiled>();
  normc_context_options options{};
  options.struct_size = sizeof options;
  options.max_threads = threads;
  std::string text = problem.text();
  normc_request request{};
  request.struct_size = sizeof request;
  request.problem = text.c_str();
  request.max_threads = threads;
  if (normc_context_create(&options, &result->context) != NORMC_OK ||
      normc_package_open_memory(result->context, package.data(), package.size(), &result->package) !=
          NORMC_OK ||
      normc_plan_create(result->package, &request, &result->plan) != NORMC_OK)
    result->error = normc_last_error();
  if (!result->error.empty()) return result;
  const std::vector<normc_number> numbers = gate::numbersOfLargeCalls(result->plan);
  if (numbers.empty()) return result;
  request.numbers = numbers.data();
  request.number_count = numbers.size();
  if (normc_plan_create(result->package, &request, &result->large) != NORMC_OK)
    result->error = normc_last_error();
  return result;
}

}  // namespace normc
