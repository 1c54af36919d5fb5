// Commands while system calls about files fail, or while the process is killed in one (faults.c).
#pragma once

#include <string>
#include <vector>

#include "tests/cli/Command.h"

namespace normc::cli {

/// One fault of a process, as faults.c has them.
struct Fault {
  std::string kind;               ///< of the call: "open", "read", "write", ...
  int call = 0;                   ///< which of this kind, from 1; 0: each
  std::string what;               ///< a number of errno, "short", "kill" or "half"
  std::string program = "normc";  ///< of the process

  std::string text() const { return program + " " + kind + " " + std::to_string(call) + " " + what; }
};

/// A test whose commands have a folder for temporary files of their own.
class FaultyTest : public CommandTest {
 protected:
  FaultyTest();
  ~FaultyTest() override;

  /// `normc ARGUMENTS...` with the fault.
  Outcome normcWith(const Fault&, const std::vector<std::string>& arguments);
  /// The files of the calls of that kind which the last command made; a call that is about no file has
  /// another word.
  const std::vector<std::string>& called() const { return called_; }
  /// The same for the calls that had the fault.
  const std::vector<std::string>& met() const { return met_; }
  /// The files that commands left in their folder for temporary files; they are removed.
  std::vector<std::string> leftBehind();

 private:
  std::string temporary_, log_;
  std::vector<std::string> called_, met_;
};

}  // namespace normc::cli
