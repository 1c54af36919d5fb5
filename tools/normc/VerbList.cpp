// normc list
#include <ostream>

#include "dsl/Library.h"
#include "dsl/StateFields.h"
#include "tools/normc/Cli.h"

namespace normc::cli {
namespace {

std::string statisticOf(const Spec& spec) {
  switch (spec.reduce) {
    case Reduce::Rows:
      return "feature";
    case Reduce::Features:
      return spec.groups.isOne() ? "row" : "row, group";
    case Reduce::Segment:
      return "segment, feature";
    case Reduce::SegmentFeatures:
      return spec.groups.isOne() ? "segment" : "segment, group";
  }
  return "";
}

std::vector<std::string> stateOf(const BuiltinNorm& norm) {
  Problem problem;
  problem.spec = norm.spec;
  std::vector<std::string> names;
  for (const Field& field : stateFields(problem)) names.push_back(field.name);
  return names;
}

ExitCode list(Output& out) {
  Json norms = Json::array();
  Table table({"norm", "statistic per", "bind", "meaning"});
  for (const BuiltinNorm& norm : builtinNorms()) {
    const std::vector<std::string> bindings = bindingNames(*norm.spec);
    norms.push_back({{"name", norm.name},
                     {"summary", norm.summary},
                     {"statistic_per", statisticOf(*norm.spec)},
                     {"bindings", bindings},
                     {"state", stateOf(norm)},
                     {"hash", norm.spec->structuralHash()}});
    table.row({norm.name, statisticOf(*norm.spec), joined(bindings), norm.summary});
  }
  if (out.json) {
    out.result({{"norms", norms}});
  } else {
    out.results() << table.text();
  }
  return ExitCode::Ok;
}

}  // namespace

Action declareList(CLI::App& flags) {
  flags.footer(
      "The column 'bind' names what a problem of the norm has to give, e.g. {heads=16}.\n"
      "normc fmt NAME prints the text of one.");
  return list;
}

}  // namespace normc::cli
