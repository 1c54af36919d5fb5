// normc explain F.npk PROBLEM [--rows N [--features N]]
#include <ostream>

#include "autotune/candidates/CallTime.h"
#include "autotune/measure/Buffers.h"
#include "autotune/tune/LiveLab.h"
#include "tools/normc/Cli.h"
#include "tools/normc/FreeMemory.h"
#include "tools/normc/PlanFlags.h"

namespace normc::cli {
namespace {

using tune::CallTime;

/// `[reads + writes]`, in words.
std::string trafficText(const package::Traffic& t) {
  return std::to_string(t.reads + t.writes) + " X-sized transfers (" + counted(t.reads, "read") + ", " +
         counted(t.writes, "write") + ")";
}

/// Reports a kernel that reads again what another schedule, or a smaller call, would keep on chip.
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

std::string textOf(const CallTime& t) {
  char ratio[96];
  std::snprintf(ratio, sizeof ratio, "%.2f [%.2f, %.2f]", t.toCopy.value, t.toCopy.low, t.toCopy.high);
  std::string text = "moved: " + bytesText(double(t.bytes())) + " by that traffic, " +
                     bytesText(double(t.transferBytes)) + " a tensor\n";
  if (t.predicted > 0)
    text += "predicted: " + secondsText(t.predicted) + ", by the model that orders candidates\n";
  char speed[32];
  std::snprintf(speed, sizeof speed, "%.1f GB/s", double(t.bytes()) / t.seconds * 1e-9);
  return text + "measured: " + secondsText(t.seconds) + ", " + speed + ", " + ratio +
         " of the time of the faster copy\n";
}

Json jsonOf(const CallTime& t) {
  Json json = {{"seconds", t.seconds},
               {"bytes", t.bytes()},
               {"to_copy", {{"value", t.toCopy.value}, {"low", t.toCopy.low}, {"high", t.toCopy.high}}}};
  if (t.predicted > 0) json["predicted_seconds"] = t.predicted;
  return json;
}

int64_t featuresOf(const Problem& problem, int64_t given) {
  if (!problem.features && given == 0)
    throw usage("the kernel is for any number of features", "say how many with --features");
  if (problem.features && given != 0 && given != *problem.features)
    throw usage("--features " + std::to_string(given) + ", and the kernel is for " +
                std::to_string(*problem.features));
  return problem.features.value_or(given);
}

/// A call that can be timed.
struct Call {
  Problem problem;
  Extents extents;
  measure::Machine machine;
  int64_t threads;
};

/// Returns the call of the flags, after all that can be wrong with them; `planned` is then of its kernel.
Call callOf(Planned& planned, int64_t rows, int64_t features, int64_t threads) {
  if (planned.place.onCuda())
    throw usage("--rows times a call on the CPU",
                "on a GPU, normc tune --device " + planned.place.text() + " --schedule does");
  Problem problem = valueOf(planned.file.problem(planned.kernel().problem), ExitCode::Usage);
  if (isOverRanks(problem.entry))
    throw usage(
        "--rows times a call by itself, and " + planned.kernel().problem + " exchanges sums with others",
        "forward and backward of the norm are timed");
  const Extents extents{1, rows, featuresOf(problem, features)};
  problem.features = extents.features;
  problem = valueOf(checkProblem(std::move(problem)), ExitCode::Usage);
  const std::string size = counted(rows, "row") + " of " + counted(extents.features, "feature");
  if (const std::string why = tune::whyTooLarge("a call of " + size, 1, rows, extents.features); !why.empty())
    throw usage(why);
  const measure::Machine machine = measure::thisMachine();

  try {
    planned.callOf(host::Plan::sizes(1, rows, extents.features));
  } catch (const host::Error& error) {  // the plan is of one shape, the flags of another
    throw usage("--rows " + std::to_string(rows) + " is of another call than the problem: " + error.what(),
                "leave sizes open in the problem, with *, or give the same ones");
  }
  requireMemory("a call on " + counted(rows, "row") + " with a copy beside it",
                2 * measure::Buffers::bytesOfSet(problem, extents));
  return {std::move(problem), extents, machine, machine.threadsFor(threads)};
}

CallTime timeOf(Planned& planned, const Call& call) {
  return tune::timeOf(std::move(planned.plan), planned.kernel(), call.problem, call.extents, call.machine,
                      call.threads);
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
  std::optional<Call> call;
  if (given.rows) call = callOf(planned, given.rows, given.features, flags.threads);
  const package::Kernel& kernel = planned.kernel();
  if (out.json) {
    Json traffic = jsonOf(kernel.traffic);
    if (kernel.warmupTraffic) traffic["warmup"] = jsonOf(*kernel.warmupTraffic);
    Json result = {
        {"problem", flags.problem},  {"kernel", planned.index},        {"serves", kernel.problem},
        {"target", kernel.target()}, {"device", planned.place.text()}, {"schedule", kernel.schedule},
        {"origin", kernel.origin},   {"selection", kernel.selection},  {"traffic", traffic},
        {"explanation", text}};
    if (call) result["time"] = jsonOf(timeOf(planned, *call));
    out.result(result);
    return ExitCode::Ok;
  }
  out.results() << text;
  if (!kernel.selection.empty()) out.results() << "records, when the package was made:\n";
  for (const std::string& rung : kernel.selection) out.results() << "  " << rung << "\n";
  out.results() << "traffic: " << trafficText(kernel.traffic) << leastText(kernel.traffic);
  if (kernel.warmupTraffic) out.results() << "; in warmup " << trafficText(*kernel.warmupTraffic);
  out.results() << "\n";
  if (!call) return ExitCode::Ok;
  out.results() << std::flush;  // a quiet core is waited for
  out.results() << textOf(timeOf(planned, *call));
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
