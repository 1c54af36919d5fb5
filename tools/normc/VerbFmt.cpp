// normc fmt FILE
#include <algorithm>
#include <ostream>

#include "dsl/Comments.h"
#include "dsl/Library.h"
#include "dsl/Nearest.h"
#include "dsl/Norms.h"
#include "dsl/Print.h"
#include "tools/normc/Cli.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"
#include "tools/normc/Values.h"

namespace normc::cli {
namespace {

struct FmtFlags {
  std::string file, output;
  bool inPlace = false, check = false;
};

bool isBuiltin(const std::string& file) { return file != "-" && access(file.c_str(), F_OK) != 0; }

/// The text of a built-in norm, whose file holds no other.
const std::string& textOf(const Norm& builtin) {
  const std::vector<BuiltinNorm>& all = builtinNorms();
  return std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.spec == builtin; })->text;
}

/// -i and --check: the file and its canonical text.
ExitCode compareWithFile(const FmtFlags& flags, const std::string& before, const std::string& text,
                         Output& out) {
  const bool same = before == text;
  if (flags.inPlace && !same) writeFile(flags.file, text);
  if (out.json)
    out.result({{"file", flags.file}, {"canonical", same}, {"written", flags.inPlace && !same}});
  else if (!same)
    out.results() << flags.file
                  << (flags.inPlace
                          ? ": written"
                          : " is not in its canonical form; normc fmt -i " + flags.file + " rewrites it")
                  << "\n";
  return same || flags.inPlace ? ExitCode::Ok : ExitCode::CheckFailed;
}

void requireOneUse(const FmtFlags& flags) {
  if (!flags.inPlace && !flags.check) return;
  const std::string flag = flags.inPlace ? "-i" : "--check";
  if (flags.inPlace && flags.check)
    throw usage("-i and --check exclude each other", "--check writes nothing");
  if (!flags.output.empty()) throw usage(flag + " and -o exclude each other", "leave out one of them");
  if (flags.file == "-" || (isBuiltin(flags.file) && !namesFile(flags.file)))
    throw usage(flag + " is for a file; " + inQuotes(flags.file) + " is none",
                "e.g. normc fmt " + flag + " my_norm.norm");
}

ExitCode fmt(const FmtFlags& flags, Output& out) {
  if (flags.file.empty()) throw usage("normc fmt needs a file", "e.g. normc fmt my_norm.norm");
  requireOneUse(flags);
  if (!flags.output.empty())
    requireOwnFile({"-o", flags.output}, {{"the input", flags.file}}, "use -i to write it back");
  std::string before, text;
  Json norms = Json::array();
  try {
    const bool builtin = isBuiltin(flags.file);
    if (!builtin) before = readFile(flags.file, kLargestNormText + 1);
    const std::string name = flags.file == "-" ? "standard input" : flags.file;
    const std::vector<Norm> read = builtin ? normsOf(flags.file) : normsIn(before, name);
    for (const Norm& norm : read)
      norms.push_back({{"name", norm->name}, {"hash", norm->structuralHash()}, {"text", print(*norm)}});
    text = textWithComments(builtin ? textOf(read[0]) : before, read);
  } catch (const Failure& failure) {
    if (out.json) out.result({{"norms", Json::array()}, {"errors", jsonOf(failure.diagnostics())}});
    throw;
  }
  if (flags.inPlace || flags.check) return compareWithFile(flags, before, text, out);
  if (!flags.output.empty()) {
    reportOf(flags.output, out);
    writeFile(flags.output, text);
  }
  if (out.json) {
    out.result({{"norms", norms}, {"errors", Json::array()}});
  } else if (flags.output.empty()) {
    out.results() << text;
  }
  return ExitCode::Ok;
}

}  // namespace

Action declareFmt(CLI::App& parser) {
  auto flags = std::make_shared<FmtFlags>();
  parser.add_option("FILE", flags->file, "A .norm file, - for the standard input, or a built-in norm")
      ->type_name("");
  parser.add_option("-o,--output", flags->output, "Write there instead of to the standard output")
      ->type_name("FILE");
  parser.add_flag("-i,--in-place", flags->inPlace, "Write the file back");
  parser.add_flag("--check", flags->check, "Write nothing; fail if the file is not in its canonical form");
  parser.footer(
      "The canonical text spells out what differs from a default, resolves 'from', and keeps comments,\n"
      "with the clauses that they belong to.");
  return [flags](Output& out) { return fmt(*flags, out); };
}

}  // namespace normc::cli
