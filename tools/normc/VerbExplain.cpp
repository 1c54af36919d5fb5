// normc explain F.npk PROBLEM [--rows N [--features N]]
#include <ostream>

#include "tools/normc/CallTime.h"
#include "tools/normc/Cli.h"
#include "tools/normc/PlanFlags.h"

namespace normc::cli {
namespace {

/// `[reads + writes]`, in words.
std::string trafficText(const Json& t) {
  const auto reads = t.at("reads").get<int64_t>(), writes = t.at("writes").get<int64_t>();
  return std::to_string(reads + writes) + " X-sized transfers (" + counted(reads, "read") + ", " +
         counted(writes, "write") + ")";
}

/// Where a kernel reads again what another schedule, or less of it, would keep on chip.
std::string leastText(const Json& t) {
  if (!t.contains("least_reads")) return "";
  const auto least = t.at("least_reads").get<int64_t>() + t.at("writes").get<int64_t>();
  const auto held = t.value("held_rows", int64_t(0));
  return "; " + std::to_string(least) + (held ? " for columns of up to " + counted(held, "row") + ", which stay on chip"
                                              : " if what is read again stayed on chip");
}

struct ExplainFlags {
  PlanFlags plan;
  int64_t rows = 0, features = 0;  ///< of a call that is timed; 0: none is
};

ExitCode explain(const ExplainFlags& given, Output& out) {
  const PlanFlags& flags = given.plan;
  if (given.features && !given.rows) throw usage("--features is of a call that is timed", "say how many --rows it has");
  Planned planned(flags, "explain");
  const std::string text = planned.plan.describe();
  std::optional<CallTime> time;
  if (given.rows)
    time = translated([&] { return timeOf(planned, given.rows, given.features, flags.threads); });
  const Json selection = planned.kernel().value("selection", Json::array());
  const Json& traffic = planned.kernel().at("traffic");
  if (out.json) {
    Json result = {{"problem", flags.problem},
                {"kernel", planned.index},
                {"serves", planned.kernel().at("problem")},
                {"target", planned.kernel().at("isa")},
                {"device", planned.place.text()},
                {"schedule", planned.kernel().at("schedule")},
                {"origin", planned.kernel().at("origin")},
                {"selection", selection},
                {"traffic", traffic},
                {"explanation", text}};
    if (time) result["time"] = toJson(*time);
    out.result(result);
    return ExitCode::Ok;
  }
  out.results() << text;
  if (!selection.empty()) out.results() << "records, when the package was made:\n";
  for (const Json& rung : selection) out.results() << "  " << rung.get<std::string>() << "\n";
  out.results() << "traffic: " << trafficText(traffic) << leastText(traffic);
  if (traffic.contains("warmup")) out.results() << "; in warmup " << trafficText(traffic.at("warmup"));
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
