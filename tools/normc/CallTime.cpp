#include "tools/normc/CallTime.h"

#include <algorithm>

#include "autotune/measure/Subject.h"
#include "autotune/tune/LiveLab.h"
#include "tools/normc/Failure.h"
#include "tools/normc/TargetFlag.h"

namespace normc::cli {
namespace {

/// Of seconds, or 0 where nobody here knows the kernel's target.
double predictedFor(const package::Kernel& kernel, const Problem& problem,
                    const codegen::Workload& workload) {
  auto targets = codegen::findGenerators(kernel.isa);
  if (!targets) {
    llvm::consumeError(targets.takeError());
    return 0;
  }
  for (const auto& target : *targets)
    if (target->generator() == kernel.generator)
      return llvm::cantFail(target->bind(problem, kernel.schedule))->predict(workload) * 1e-9;
  return 0;
}

int64_t featuresOf(const Problem& problem, int64_t given) {
  if (!problem.features && given == 0)
    throw usage("the kernel is for any number of features", "say how many with --features");
  if (problem.features && given != 0 && given != *problem.features)
    throw usage("--features " + std::to_string(given) + ", and the kernel is for " +
                std::to_string(*problem.features));
  return problem.features.value_or(given);
}

}  // namespace

CallTime timeOf(Planned& planned, int64_t rows, int64_t features, int64_t threads) {
  if (planned.place.onCuda())
    throw usage("--rows times a call on the CPU",
                "on a GPU, normc tune --device " + planned.place.text() + " --schedule does");
  Problem problem = valueOf(planned.file.problem(planned.kernel().problem), ExitCode::Usage);
  const Extents extents{1, rows, featuresOf(problem, features)};
  problem.features = extents.features;
  problem = valueOf(checkProblem(std::move(problem)), ExitCode::Usage);
  if (rows > tune::kMostElements / extents.features)
    throw usage(std::to_string(rows) + " rows of " + std::to_string(extents.features) +
                " features; legal: up to " + std::to_string(tune::kMostElements) + " elements");
  const measure::Machine machine = measure::thisMachine();
  if (threads == 0) threads = machine.processors;

  try {
    planned.callOf(host::Plan::sizes(1, rows, extents.features));
  } catch (const host::Error& error) {  // the plan is of one shape, the flags of another
    throw usage("--rows " + std::to_string(rows) + " is of another call than the problem: " + error.what(),
                "leave sizes open in the problem, with *, or give the same ones");
  }
  const package::Kernel& kernel = planned.kernel();
  CallTime time;
  time.traffic = {int(kernel.traffic.reads), int(kernel.traffic.writes)};
  const int64_t needed = 2 * measure::Buffers::bytesOfSet(problem, extents);
  if (needed > machine.memory)
    throw refused("a call on " + std::to_string(rows) + " rows and a copy beside it need " +
                  bytesText(double(needed)) + ", and " + bytesText(double(machine.memory)) + " are free");
  const measure::Buffers buffers(planned.plan, problem, extents), forCopies(planned.plan, problem, extents);
  time.tensorBytes = buffers.tensorBytes();
  measure::Subject subject(std::move(planned.plan), buffers);
  const std::vector<const void*> inputs = forCopies.tensors(0).inputs();
  std::vector<std::unique_ptr<measure::Contestant>> copies;
  std::vector<measure::Contestant*> all{&subject};
  for (const measure::Stores stores : {measure::Stores::Cached, measure::Stores::Streaming}) {
    copies.push_back(measure::makeCopy(inputs, forCopies.output(0).data(), time.tensorBytes, time.traffic,
                                       stores, int(threads)));
    all.push_back(copies.back().get());
  }
  const auto samples = measure::race(all, measure::RaceOptions{});
  time.seconds = measure::median(samples[0]);
  const bool cached = measure::median(samples[1]) < measure::median(samples[2]);
  time.toCopy = measure::pairedRatio(samples[0], samples[cached ? 1 : 2]);
  time.predicted = predictedFor(kernel, problem,
                                {1, rows, extents.features, threads, machine.secondCache, machine.lastCache});
  return time;
}

static std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g us", seconds * 1e6);
  return text;
}

std::string text(const CallTime& t) {
  char ratio[96];
  std::snprintf(ratio, sizeof ratio, "%.2f [%.2f, %.2f]", t.toCopy.value, t.toCopy.low, t.toCopy.high);
  std::string text = "moved: " + bytesText(double(t.bytes())) + " by that traffic, " +
                     bytesText(double(t.tensorBytes)) + " a tensor\n";
  if (t.predicted > 0)
    text += "predicted: " + microseconds(t.predicted) + ", by the model that orders candidates\n";
  char speed[32];
  std::snprintf(speed, sizeof speed, "%.1f GB/s", double(t.bytes()) / t.seconds * 1e-9);
  return text + "measured: " + microseconds(t.seconds) + ", " + speed + ", " + ratio +
         " of the time of the faster copy\n";
}

Json toJson(const CallTime& t) {
  Json json = {{"seconds", t.seconds},
               {"bytes", t.bytes()},
               {"to_copy", {{"value", t.toCopy.value}, {"low", t.toCopy.low}, {"high", t.toCopy.high}}}};
  if (t.predicted > 0) json["predicted_seconds"] = t.predicted;
  return json;
}

}  // namespace normc::cli
