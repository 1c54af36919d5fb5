#include "tools/normc/SelfTest.h"

#include <chrono>

#include "autotune/gate/Gate.h"
#include "codegen/Package.h"
#include "dsl/Library.h"
#include "runtime/normc.hpp"
#include "tools/normc/Failure.h"
#include "tools/normc/Output.h"

namespace normc::cli {
namespace {

constexpr const char* kProblem = "power_norm:forward@f32[*x64]";

/// The line of a plan's description that begins with `key`.
std::string lineOf(const std::string& description, const std::string& key) {
  const size_t at = description.find("\n" + key + ": ");
  if (at == description.npos) return "";
  const size_t begin = at + key.size() + 3;
  return description.substr(begin, description.find('\n', begin) - begin);
}

void judgeAll(const host::Plan& plan, const Problem& problem, SelfTest& test) {
  for (const gate::Trial& trial : gate::standardTrials(problem, *problem.features)) {
    const gate::Verdict verdict = gate::judge(plan.get(), problem, trial);
    if (verdict.ok) continue;
    test.text = "compiled and loaded, but wrong: " + verdict.text;
    return;
  }
  test.ok = true;
}

}  // namespace

SelfTest selfTest() {
  SelfTest test;
  const auto start = std::chrono::steady_clock::now();
  try {
    const Problem problem = valueOf(parseProblem(kProblem, findNorm), ExitCode::Refused);
    const auto target = valueOf(codegen::findTarget("host"), ExitCode::Refused);
    const std::string bytes =
        valueOf(codegen::buildPackage(codegen::defaultJobs(problem, target)), ExitCode::Refused);
    const host::Context context;
    const host::Package package(context, bytes.data(), bytes.size());
    const host::Plan plan(package, kProblem);
    test.threads = lineOf(plan.describe(), "threads");
    judgeAll(plan, problem, test);
  } catch (const Failure& failure) {
    test.text = failure.diagnostics().front().message;
  } catch (const host::Error& error) {
    test.text = error.what();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (test.ok)
    test.text = std::string(kProblem) + " compiled, loaded and right in " + secondsText(took.count());
  return test;
}

}  // namespace normc::cli
