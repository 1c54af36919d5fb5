#include "tests/cli/Faults.h"

#include <filesystem>
#include <fstream>

namespace normc::cli {

namespace fs = std::filesystem;

FaultyTest::FaultyTest() : temporary_(folder_ + ".tmp"), log_(folder_ + ".log") {
  fs::create_directory(temporary_);
}

FaultyTest::~FaultyTest() { fs::remove_all(temporary_), fs::remove(log_); }

Outcome FaultyTest::normcWith(const Fault& fault, const std::vector<std::string>& arguments) {
  fs::remove(log_);
  std::vector<std::string> command{"LD_PRELOAD=" NORMC_TEST_FAULTS,
                                   "NORMC_TEST_FAULT=" + fault.text() + " " + log_, "TMPDIR=" + temporary_,
                                   NORMC_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Outcome outcome = program("/usr/bin/env", command);
  met_.clear(), called_.clear();
  std::ifstream log(log_);
  for (std::string line; std::getline(log, line);) {
    called_.push_back(line.substr(2));
    if (line[0] == '+') met_.push_back(called_.back());
  }
  return outcome;
}

std::vector<std::string> FaultyTest::leftBehind() {
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(temporary_)) {
    left.push_back(entry.path().filename().string());
    fs::remove_all(entry.path());
  }
  return left;
}

}  // namespace normc::cli
