// normc explain F.npk PROBLEM [--rows N [--features N]]
#include <ostream>

#include "tools/normc/CallTime.h"
#include "tools/normc/Cli.h"
#include "tools/normc/PlanFlags.h"

namespace normc::cli {
namespace {

/// `[reads + writes]`, in words.
std::string trafficText(const package::Traffic& t) {
  return std::to_string(t.reads + t.writes) + " X-sized transfers (" + counted(t.reads, "read") + ", " +
         counted(t.writes, "write") + ")";
}

/// Where a kernel reads again what another schedule, or less of it, would keep on chip.
std::string leastText(const package::Traffic& t) {
  if (!t.leastReads) return "";
  return "; " + std::to_string(t.least() + t.writes) +
         (t.heldRows ? " for columns of up to " + counted(t.heldRows, "row") + ", which stay on chip"
                     : " if what is read again stayed on chip");
}

Json jsonOf(const package::Traffic& t) {
  Json json = {{"reads", t.reads}, {"writes", t.writes}};
  if (t.leastReads) json["least_reads"] = *t.leastReads;
  if (t.heldRows) json["held_rows"] = t.heldRows;
  return json;
}

struct ExplainFlags {
  PlanFlags plan;
  int64_t rows = 0, features = 0;  ///< of a call that is timed; 0: none is
};

ExitCode explain(const ExplainFlags& given, Output& out) {
  const PlanFlags& flags = given.plan;
  if (given.features && !given.rows)
    throw usage("--features is of a call that is timed", "say how many --rows it has");
  Planned planned(flags, "explain");
  const std::string text = planned.plan.describe();
  std::optional<CallTime> time;
  if (given.rows) time = timeOf(planned, given.rows, given.features, flags.threads);
  const package::Kernel& kernel = planned.kernel();
  if (out.json) {
    Json traffic = jsonOf(kernel.traffic);
    if (kernel.warmupTraffic) traffic["warmup"] = jsonOf(*kernel.warmupTraffic);
    Json result = {
        {"problem", flags.problem}, {"kernel", planned.index},        {"serves", kernel.problem},
        {"target", kernel.isa},     {"device", planned.place.text()}, {"schedule", kernel.schedule},
        {"origin", kernel.origin},  {"selection", kernel.selection},  {"traffic", traffic},
        {"explanation", text}};
    if (time) result["time"] = toJson(*time);
    out.result(result);
    return ExitCode::Ok;
  }
  out.results() << text;
  if (!kernel.selection.empty()) out.results() << "records, when the package was made:\n";
  for (const std::string& rung : kernel.selection) out.results() << "  " << rung << "\n";
  out.results() << "traffic: " << trafficText(kernel.traffic) << leastText(kernel.traffic);
  if (kernel.warmupTraffic) out.results() << "; in warmup " << trafficText(*kernel.warmupTraffic);
  out.results() << "\n";
  if (time) out.results() << cli::text(*time);
  return ExitCode::Ok;
}

}  // namespace

Action declareExplain(CLI::App& parser) {
  auto flags = std::make_shared<ExplainFlags>();
  flags->plan.declare(parser);
  addWhole(parser, "--rows", flags->rows, "Time a call on so many rows, beside a copy", 1);
  addWhole(parser, "--features", flags->features, "Of that call, where the kernel is for any number", 1);
  parser.footer(
      "A size may be a number: the problem [4096x768] is served by kernels for exactly such sizes too.");
  return [flags](Output& out) { return explain(*flags, out); };
}

}  // namespace normc::cli
