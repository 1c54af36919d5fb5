// normc fmt FILE
#include <ostream>

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
};

std::vector<Norm> normsToPrint(const std::string& file) {
  if (file != "-" && access(file.c_str(), F_OK) != 0) return normsOf(file);
  return normsIn(readFile(file, kLargestNormText + 1), file == "-" ? "standard input" : file);
}

ExitCode fmt(const FmtFlags& flags, Output& out) {
  if (flags.file.empty()) throw usage("normc fmt needs a file", "e.g. normc fmt my_norm.norm");
  std::string text;
  Json norms = Json::array();
  try {
    for (const Norm& norm : normsToPrint(flags.file)) {
      text += (text.empty() ? "" : "\n") + print(*norm);
      norms.push_back({{"name", norm->name}, {"hash", norm->structuralHash()}, {"text", print(*norm)}});
    }
  } catch (const Failure& failure) {
    if (out.json) out.result({{"norms", Json::array()}, {"errors", jsonOf(failure.diagnostics())}});
    throw;
  }
  if (!flags.output.empty()) reportOf(flags.output, out), writeFile(flags.output, text);
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
  parser.add_option("FILE", flags->file, "A .norm file, - for the standard input, or a built-in norm");
  parser.add_option("-o,--output", flags->output, "Write there instead of to the standard output");
  parser.footer(
      "The canonical text spells out what differs from a default, resolves `from`, and has no comments.");
  return [flags](Output& out) { return fmt(*flags, out); };
}

}  // namespace normc::cli
