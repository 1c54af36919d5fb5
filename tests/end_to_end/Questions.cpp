#include "tests/end_to_end/Questions.h"

#include <gtest/gtest.h>

#include "dsl/Print.h"

namespace normc {

const std::vector<gate::Question>& standardQuestions(const Problem& problem, int64_t features) {
  static std::string asked;
  static std::vector<gate::Question> questions;
  const std::string name = print(*problem.spec) + problem.text() + " " + std::to_string(features);
  if (name == asked) return questions;
  asked = name;
  questions.clear();
  for (const gate::Trial& trial : gate::standardTrials(problem, features)) {
    auto question = gate::questionFor(problem, trial);
    if (question)
      questions.push_back(*std::move(question));
    else
      ADD_FAILURE() << problem.text() << " on " << trial.text(problem) << ": " << text(question.errors());
  }
  return questions;
}

}  // namespace normc
