#include "tests/end_to_end/Questions.h"

#include <gtest/gtest.h>

#include <map>

#include "dsl/Print.h"

namespace normc {

std::vector<gate::Question> questionsOf(const Problem& problem, const std::vector<gate::Trial>& trials) {
  std::vector<gate::Question> questions;
  std::map<std::string, size_t> asked;
  for (const gate::Trial& trial : trials) {
    gate::Trial alike = trial;
    alike.placement = {.leaveOut = trial.placement.leaveOut};
    const auto [at, isNew] = asked.try_emplace(alike.text(problem), questions.size());
    if (!isNew) {
      questions.push_back(questions[at->second]);
      questions.back().trial = trial;
      continue;
    }
    auto question = gate::questionFor(problem, trial);
    if (question) {
      questions.push_back(*std::move(question));
    } else {
      ADD_FAILURE() << problem.text() << " on " << trial.text(problem) << ": " << text(question.errors());
      asked.erase(at);
    }
  }
  return questions;
}

const std::vector<gate::Question>& standardQuestions(const Problem& problem, int64_t features) {
  static std::string asked;
  static std::vector<gate::Question> questions;
  const std::string name = print(*problem.spec) + problem.text() + " " + std::to_string(features);
  if (name == asked) return questions;
  asked = name;
  std::vector<gate::Trial> trials = gate::standardTrials(problem, features);
  for (gate::Trial& trial : gate::trialsOfNumbers(problem, features)) trials.push_back(std::move(trial));
  return questions = questionsOf(problem, trials);
}

}  // namespace normc
