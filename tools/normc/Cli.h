// The command line: verbs, the parser they share, and what happens around each.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "tools/normc/ExitCode.h"
#include "tools/normc/Output.h"

namespace normc::cli {

/// The action of a verb, run after the command line is read. Throws Failure.
using Action = std::function<ExitCode(Output&)>;

/// One verb. `declare` adds its flags to its own part of the parser and returns
/// the work, which owns the values of those flags.
struct Verb {
  const char* name;
  const char* summary;
  Action (*declare)(CLI::App& flags);
};

/// A flag whose value is a list of words.
void addList(CLI::App&, const std::string& flag, std::vector<std::string>& values, const std::string& what);
/// A flag with a whole number of `least` or more.
void addWhole(CLI::App&, const std::string& flag, int64_t& value, const std::string& what, int64_t least = 0);

/// Returns the stream that says that `file` was written: the standard output, as long as the file is not
/// there itself.
std::ostream& reportOf(const std::string& file, Output&);

Action declareList(CLI::App&);
Action declareFmt(CLI::App&);
Action declareCompile(CLI::App&);
Action declareInspect(CLI::App&);
Action declareCheck(CLI::App&);
Action declareRun(CLI::App&);
Action declareExplain(CLI::App&);
Action declareTune(CLI::App&);
Action declareRecords(CLI::App&);
Action declareDoctor(CLI::App&);

/// Parses, runs the verb, prints a failure; the whole program.
ExitCode run(int argc, const char* const* argv, const std::vector<Verb>& verbs);

}  // namespace normc::cli
