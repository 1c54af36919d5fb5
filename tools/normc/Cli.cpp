#include "tools/normc/Cli.h"

#include <algorithm>
#include <iostream>

#include "dsl/Nearest.h"
#include "runtime/normc.h"
#include "tools/normc/Files.h"
#include "tools/normc/Translated.h"
#include "tools/normc/Values.h"

namespace normc::cli {
namespace {

constexpr const char* kJsonHelp = "Print the result, or the errors, as one JSON document";

std::vector<std::string> flagsOf(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

/// Returns the error of what the parser could not place: an unknown verb, an unknown flag, or one argument
/// too many.
void refuseExtras(const CLI::App& app, const std::vector<Verb>& verbs) {
  const CLI::App* verb = app.get_subcommands().empty() ? nullptr : app.get_subcommands()[0];
  if (verb)
    for (const std::string& extra : app.remaining(/*recurse=*/false)) {
      const std::string name = extra.substr(0, extra.find('='));
      const std::vector<std::string> known = flagsOf(*verb);
      if (std::find(known.begin(), known.end(), name) != known.end())
        throw usage(inQuotes(name) + " stands before the verb",
                    "write it behind: normc " + verb->get_name() + " " + name);
    }
  for (const std::string& extra : app.remaining(/*recurse=*/true)) {
    if (extra == "--") continue;
    const bool flag = extra.starts_with("-");
    if (!verb && !flag) {
      std::vector<std::string> names;
      for (const Verb& each : verbs) names.push_back(each.name);
      throw usage("there is no verb " + inQuotes(extra),
                  didYouMean(extra, names, "the verbs are " + oneOf(names)));
    }
    const std::string where = verb ? "normc " + verb->get_name() : "normc";
    std::vector<std::string> known = flagsOf(app);
    if (verb)
      for (const std::string& name : flagsOf(*verb)) known.push_back(name);
    if (!flag) {
      const bool isFile =
          extra.find('=') != extra.npos && std::find(known.begin(), known.end(), "--in") != known.end();
      throw usage(where + " takes no argument " + inQuotes(extra),
                  isFile ? "repeat the flag before each file: --in " + extra + ", or --out"
                         : "see " + where + " --help");
    }
    const std::string name = extra.substr(0, extra.find('='));
    throw usage(where + " has no flag " + inQuotes(name),
                didYouMean(name, known, "see " + where + " --help"));
  }
}

/// A value that a script left empty is no wish for the default.
void refuseEmptyValues(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& value : option->results())
      if (value.empty())
        throw usage(option->get_name(/*positional=*/false) + " is empty", "leave it out, or give it a value");
}

/// Returns what the parser says of a flag's values, in the words of this program.
Failure refusedValues(const CLI::ParseError& error) {
  const std::string text = error.what(), flag = text.substr(0, text.find(':'));
  if (text.find("At Most") != text.npos) return usage(flag + " is given more than once");
  if (error.get_name() == "ArgumentMismatch") return usage(flag + " needs a value");
  return usage(text);
}

/// `normc help VERB` is `normc VERB --help`.
std::vector<const char*> withoutHelpVerb(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (argc > 1 && std::string_view(words[1]) == "help") {
    words.erase(words.begin() + 1);
    words.push_back("--help");
  }
  return words;
}

ExitCode parseAndRun(CLI::App& app, int argc, const char* const* argv, const std::vector<Verb>& verbs,
                     Output& out) {
  std::map<const CLI::App*, Action> actions;
  for (const Verb& verb : verbs) {
    CLI::App* const flags = app.add_subcommand(verb.name, verb.summary);
    actions[flags] = verb.declare(*flags);
    flags->add_flag("--json", out.json, kJsonHelp);
  }
  try {
    const std::vector<const char*> words = withoutHelpVerb(argc, argv);
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::CallForVersion&) {
    if (out.json)
      out.result({{"version", normc_version()}});
    else
      out.results() << "normc " << normc_version() << "\n";
    return ExitCode::Ok;
  } catch (const CLI::Success& shown) {  // --help
    refuseExtras(app, verbs);
    app.exit(shown, out.results(), out.talk());
    return ExitCode::Ok;
  } catch (const CLI::ParseError& error) {
    refuseExtras(app, verbs);  // an unknown flag explains more than what it led to
    throw refusedValues(error);
  }
  refuseExtras(app, verbs);
  if (app.get_subcommands().empty()) throw usage("there is no verb on the command line", "see normc --help");
  refuseEmptyValues(*app.get_subcommands()[0]);
  return translated([&] { return actions.at(app.get_subcommands()[0])(out); });
}

/// The one place that prints errors.
ExitCode report(const Failure& failure, Output& out) {
  if (out.json && !out.answered()) out.result({{"errors", jsonOf(failure.diagnostics())}});
  out.results().flush();
  out.talk() << failure.what() << std::flush;
  return failure.code();
}

}  // namespace

void addWhole(CLI::App& app, const std::string& flag, int64_t& value, const std::string& what,
              int64_t least) {
  app.add_option_function<std::string>(
         flag, [flag, &value, least](const std::string& text) { value = wholeOf(flag, text, least); }, what)
      ->type_name("N");
}

void addList(CLI::App& app, const std::string& flag, std::vector<std::string>& values,
             const std::string& what) {
  app.add_option_function<std::string>(
         flag, [flag, &values](const std::string& text) { values = listOf(flag, text); }, what)
      ->join()
      ->type_name("A,B,...");
}

std::ostream& reportOf(const std::string& file, Output& out) {
  if (out.json && file == "-")
    throw usage("--json and -o - both write to the standard output", "name a file for one of them");
  return isStream(file) ? out.talk() : out.results();
}

ExitCode run(int argc, const char* const* argv, const std::vector<Verb>& verbs) {
  Output out(std::cout, std::cerr);
  CLI::App app("normc compiles the description of a normalization layer to kernels and runs them.", "normc");
  app.set_version_flag("--version", std::string("normc ") + normc_version());
  app.add_flag("--json", out.json, kJsonHelp);
  // Errors of the other flags are JSON, too.
  out.json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
  app.footer(kExitCodes);
  app.require_subcommand(0, 1);
  app.allow_extras()->fallthrough();
  try {
    const ExitCode code = parseAndRun(app, argc, argv, verbs, out);
    if (!out.results().flush()) throw refused("cannot write the result to the standard output");
    return code;
  } catch (const Failure& failure) {
    return report(failure, out);
  } catch (const std::bad_alloc&) {
    return report(refused("no memory left"), out);
  } catch (const std::exception& error) {  // no caller expects it: a mistake of this program
    return report(refused(error.what(), "normc did not expect this; please report it"), out);
  }
}

}  // namespace normc::cli
