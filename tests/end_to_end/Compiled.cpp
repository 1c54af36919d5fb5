#include "tests/end_to_end/Compiled.h"

#include <gtest/gtest.h>

#include <bit>

#include "dsl/Library.h"
#include "dsl/Print.h"

namespace normc {

codegen::cpu::Isa hostIsa() { return llvm::cantFail(codegen::cpu::findIsa("host")); }

Bits bitsOf(const gate::CallResult& result) {
  Bits all;
  for (const auto& [name, values] : result.outputs) {
    std::vector<uint64_t>& bits = all[name];
    for (const double value : values) bits.push_back(std::bit_cast<uint64_t>(value));
  }
  return all;
}

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
  options.max_threads = threads;
  try {
    result->context.emplace(options);
    result->package.emplace(*result->context, package.data(), package.size());
    result->plans.emplace([&package = *result->package, text = problem.text(),
                           threads](const std::vector<normc_number>& numbers) {
      normc_request request{};
      request.numbers = numbers.data(), request.number_count = numbers.size();
      request.max_threads = threads;
      return host::Plan(package, text, request);
    });
  } catch (const host::Error& error) {
    result->error = error.what();
    return result;
  }
  result->plan = result->plans->plan().get();
  if (const host::Plan* large = result->plans->large()) result->large = large->get();
  return result;
}

gate::Verdict Compiled::judge(const Problem& problem, const gate::Question& question) {
  if (!plans) return {.ok = false, .text = error};
  std::vector<gate::Verdict> verdicts;
  for (const normc_plan* each : plans->of(question.trial)) {
    verdicts.push_back(gate::judge(each, problem, question));
    if (!verdicts.back().ok) return verdicts.back();
  }
  return verdicts.front();
}

gate::Verdict Compiled::judge(const Problem& problem, const gate::Trial& trial) {
  const auto question = gate::questionFor(problem, trial);
  return question ? judge(problem, *question) : gate::Verdict{.ok = false, .text = text(question.errors())};
}

}  // namespace normc
