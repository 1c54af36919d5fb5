#include "tests/end_to_end/WithClauses.h"

#include <gtest/gtest.h>

#include "dsl/Library.h"

namespace normc {

std::optional<Problem> problemWith(const std::string& base, const std::string& clauses,
                                   const std::string& rest) {
  std::string text = "norm n from " + base + " {\n  ";
  for (char c : clauses) text += c == ';' ? "\n  " : std::string(1, c);
  const auto specs = readNorms(text + "\n}\n", "test");
  if (!specs) {
    ADD_FAILURE() << normc::text(specs.errors());
    return std::nullopt;
  }
  const auto spec = specs->back();
  auto problem = parseProblem("n" + rest, [&](std::string_view) { return Result(spec); });
  return problem ? std::optional(*problem) : std::nullopt;
}

static std::vector<gate::Trial> trialsOf(const Problem& problem) {
  const int64_t features = problem.features.value_or(20);
  const auto many = [&](int64_t segments) { return problem.segmented ? segments : 1; };
  std::vector<gate::Trial> trials{{.extents = {many(3), 37, features}, .step = 3},
                                  {.extents = {many(5), 2, features}, .nanPadding = problem.mask, .step = 1},
                                  {.extents = {many(2), 70, features}, .data = HardInput::Drift, .step = 7},
                                  {.extents = {1, 1, features}, .step = 2}};
  trials[0].placement.misalign = 1;
  if (problem.mask && problem.spec->padding != Padding::Exclude)
    for (gate::Trial& trial : trials) trial.nanPadding = false;
  return trials;
}

void expectRight(const Problem& problem, const codegen::cpu::Schedule& schedule,
                 const codegen::cpu::Isa& isa) {
  SCOPED_TRACE(problem.text() + " " + schedule.text() + " " + isa.name.str());
  const auto kernel = compiled(problem, schedule, isa, 2);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const gate::Trial& trial : trialsOf(problem)) {
    const auto question = gate::questionFor(problem, trial);
    ASSERT_TRUE(question) << normc::text(question.errors());
    const gate::Verdict verdict = kernel->judge(problem, *question);
    ASSERT_TRUE(verdict.ok) << verdict.text;
  }
}

}  // namespace normc
