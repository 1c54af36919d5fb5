#include "tools/normc/TuneSubcommand.h"

#include <algorithm>
#include <map>

#include "tools/normc/Failure.h"

namespace normc::cli {
namespace {

using enum TuneSubcommand;

std::string nameOf(TuneSubcommand word) {
  const char* const names[] = {"normc tune", "normc tune export", "normc tune run-bundle",
                               "normc tune import"};
  return names[int(word)];
}

/// Returns the subcommands that take a flag. Flags outside the table select problems.
std::vector<TuneSubcommand> usersOf(const std::string& flag) {
  static const std::map<std::string, std::vector<TuneSubcommand>> users{
      {"--device", {Tune, RunBundle}}, {"--cuda-library", {Tune, RunBundle}},
      {"--budget", {Tune, RunBundle}}, {"--records", {Tune, RunBundle, Import}},
      {"--fresh", {Tune, RunBundle}},  {"--schedule", {Tune, Export}},
      {"--exhaustive", {Tune}},        {"--output", {Export}},
      {"--candidates", {Export}},      {"--total", {Tune}},
      {"--random", {Export}},          {"--json", {Tune, Export, RunBundle, Import}},
  };
  const auto at = users.find(flag);
  return at == users.end() ? std::vector{Tune, Export} : at->second;
}

}  // namespace

TuneSubcommand wordIn(const TuneFlags& flags) {
  const std::string first = flags.problems.inputs.empty() ? "" : flags.problems.inputs[0];
  return first == "export" ? Export : first == "run-bundle" ? RunBundle : first == "import" ? Import : Tune;
}

void refuseUnused(const CLI::App& parser, TuneSubcommand word) {
  for (const CLI::Option* option : parser.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty() || option->get_lnames()[0] == "help") continue;
    const std::string flag = "--" + option->get_lnames()[0];
    const std::vector<TuneSubcommand> users = usersOf(flag);
    if (std::find(users.begin(), users.end(), word) != users.end()) continue;
    std::vector<std::string> names;
    for (const TuneSubcommand user : users) names.push_back(nameOf(user));
    throw usage(nameOf(word) + " has no use for " + flag, "it is for " + joined(names));
  }
}

}  // namespace normc::cli
