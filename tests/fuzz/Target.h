// A fuzz target: a function of any bytes that checks promises of docs/reliability.md. libFuzzer calls it with
// inputs that it makes (Fuzzer.cpp), ctest with seeds, their mutations and regressions (ReplayTest.cpp).
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace normc::fuzz {

/// A promise that an input breaks.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws a Fault with the promise unless it is kept.
inline void require(bool kept, const std::string& promise) {
  if (!kept) throw Fault(promise);
}

struct Target {
  std::string_view name;
  /// Throws a Fault, or any other exception, if the input breaks a promise.
  void (*run)(std::string_view bytes);
  /// Returns inputs that reach the code behind the first checks.
  std::vector<std::string> (*seeds)();
  bool slow = false;  ///< an input runs a part of a tuning
};

/// Returns all targets of this build.
std::span<const Target> targets();

/// Runs a target. Throws a Fault also if it takes more processor time than an input of that size may.
void run(const Target&, std::string_view bytes);

// One file for each.
void texts(std::string_view);
std::vector<std::string> seedsOfTexts();
void problems(std::string_view);
std::vector<std::string> seedsOfProblems();
void packages(std::string_view);
std::vector<std::string> seedsOfPackages();
void records(std::string_view);
std::vector<std::string> seedsOfRecords();
void bundles(std::string_view);
std::vector<std::string> seedsOfBundles();
void requests(std::string_view);
std::vector<std::string> seedsOfRequests();
void answers(std::string_view);
std::vector<std::string> seedsOfAnswers();
void calls(std::string_view);
std::vector<std::string> seedsOfCalls();
void schedules(std::string_view);
std::vector<std::string> seedsOfSchedules();

}  // namespace normc::fuzz
