// The program as a user meets it: a command in a folder of its own, and what came of it.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace normc::cli {

struct Outcome {
  int code = -1;  ///< exit code; 128 + the signal's number if one ended it
  std::string out, err;

  /// The standard output as JSON; a failed test where it is none.
  nlohmann::json json() const;
};

/// A test whose commands run in a fresh folder, which is gone afterwards.
class CommandTest : public testing::Test {
 protected:
  CommandTest();
  ~CommandTest() override;

  /// `normc ARGUMENTS... < INPUT`
  Outcome normc(std::vector<std::string> arguments, const std::string& input = "/dev/null") const {
    return start(std::move(arguments), false, NORMC_PROGRAM, input);
  }
  /// Another copy of the program.
  Outcome program(const std::string& path, std::vector<std::string> arguments) const {
    return start(std::move(arguments), false, path);
  }
  /// The same with Ctrl-C pressed before the program looks for the first time.
  Outcome interrupted(std::vector<std::string> arguments) const { return start(std::move(arguments), true); }

  void write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;
  bool exists(const std::string& name) const;
  std::vector<std::string> files() const;

  /// Compiles problems of built-in norms to `name`, each list once in a process.
  void package(const std::string& name, std::vector<std::string> problems) const;
  /// Replaces part of the manifest by text of the same length, and mends its hash.
  void rewriteManifest(const std::string& name, const std::string& from, const std::string& to) const;

  std::string folder_;

 private:
  Outcome start(std::vector<std::string> arguments, bool interrupt,
                const std::string& program = NORMC_PROGRAM, const std::string& input = "/dev/null") const;
};

/// `text` contains `part`; both are shown where it does not.
testing::AssertionResult contains(const std::string& text, const std::string& part);

}  // namespace normc::cli
