#include "tools/normc/TuneTasks.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "autotune/measure/Policy.h"
#include "autotune/tune/LiveLab.h"
#include "dsl/Nearest.h"
#include "tools/normc/Failure.h"

namespace normc::cli {
namespace {

/// `i/n`, counted from 1.
std::pair<int64_t, int64_t> shardOf(const std::string& text) {
  if (text.empty()) return {1, 1};
  const size_t slash = std::min(text.find('/'), text.size());
  const auto number = [&](size_t begin, size_t end) {
    int64_t value = 0;
    const auto read = std::from_chars(text.data() + std::min(begin, end), text.data() + end, value);
    if (read.ec != std::errc() || read.ptr != text.data() + end || value < 1)
      throw usage("--shard is " + inQuotes(text) + "; it must have the form 2/8: part 2 of 8");
    return value;
  };
  const int64_t part = number(0, slash), parts = number(slash + 1, text.size());
  if (part > parts)
    throw usage("--shard is " + inQuotes(text) + "; there are only " + std::to_string(parts) + " parts");
  return {part, parts};
}

std::vector<Problem> problemsWithFeatures(const ProblemFlags& flags) {
  std::vector<Problem> problems;
  for (Problem& problem : problemsOf(flags))
    if (problem.features) problems.push_back(std::move(problem));
  if (problems.empty())
    throw usage("normc tune needs to know how many features there are",
                "e.g. normc tune layer_norm --features 1024; a kernel for any number cannot be timed");
  return problems;
}

/// Returns the values in their order, each once.
template <typename T>
std::vector<T> eachOnce(std::vector<T> values) {
  for (size_t i = 0; i < values.size();)
    if (std::find(values.begin(), values.begin() + long(i), values[i]) != values.begin() + long(i))
      values.erase(values.begin() + long(i));
    else
      ++i;
  return values;
}

/// The numbers of rows that a problem is tuned for: as given, or one that makes x as large as asked for.
std::vector<int64_t> rowsFor(const TuneFlags& flags, int64_t segments, int64_t features) {
  std::vector<int64_t> all;
  for (const std::string& rows : flags.rows) all.push_back(wholeOf("--rows", rows, 1));
  if (flags.elements)
    all.push_back(
        int64_t(std::bit_floor(uint64_t(std::max<int64_t>(flags.elements / segments / features, 1)))));
  if (all.empty()) all.push_back(2048);
  return eachOnce(std::move(all));
}

}  // namespace

std::vector<TuneTask> tasksOf(const TuneFlags& flags, int64_t threads) {
  if (flags.problems.inputs.empty())
    throw usage("normc tune needs a norm",
                "e.g. normc tune layer_norm --features 1024 --records tuned.jsonl");
  for (const std::string& policy : flags.policies)
    wordOf("--policy", policy, {measure::kPolicyNames.begin(), measure::kPolicyNames.end()});
  if (flags.threads > tune::kMostThreads)
    throw usage("--threads is '" + std::to_string(flags.threads) + "'; it must be " +
                std::to_string(tune::kMostThreads) + " or less");
  const auto [part, parts] = shardOf(flags.shard);
  std::vector<TuneTask> tasks;
  int64_t index = 0;
  if (flags.elements && !flags.rows.empty())
    throw usage("--rows and --elements both say how many rows there are", "give one of them");
  const std::vector<Problem> problems = problemsWithFeatures(flags.problems);
  if (flags.segments &&
      std::none_of(problems.begin(), problems.end(), [](const Problem& p) { return p.segmented; }))
    throw usage("--segments is '" + std::to_string(flags.segments) + "': " + problems[0].text() +
                    " has two dimensions",
                "leave it out, or say --segmented");
  for (const Problem& problem : problems) {
    const int64_t segments = !problem.segmented ? 1 : flags.segments ? flags.segments : 8;
    for (const int64_t rows : rowsFor(flags, segments, *problem.features))
      for (const std::string& policy : eachOnce(flags.policies)) {
        tune::Task task{
            problem.parts(), problem.spec->structuralHash(), segments, rows, *problem.features, threads,
            policy};
        if (const std::string why = tune::whyTooLarge(task); !why.empty())
          throw usage((segments > rows ? "--segments is '" + std::to_string(segments)
                                       : "--rows is '" + std::to_string(rows)) +
                      "': " + why);
        if (index++ % parts == part - 1) tasks.push_back({problem, std::move(task)});
      }
  }
  return tasks;
}

}  // namespace normc::cli
