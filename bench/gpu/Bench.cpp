#include "bench/gpu/Bench.h"

#include <algorithm>
#include <map>
#include <set>

#include "bench/kit/Text.h"
#include "bench/kit/TrainingCall.h"

namespace normc::gpu {
namespace {

using gate::CudaDevice;

/// Elements that are checked before a kernel is timed.
constexpr int64_t kChecked = 1 << 16;
constexpr double kRoofSeconds = 2e-3;

/// The time of a call that moves so many bytes, and its speed.
Json speedOf(const measure::Samples& samples, int64_t bytes) {
  return {{"us", inMicroseconds(samples)}, {"gbps", double(bytes) / measure::median(samples) * 1e-9}};
}

Json toJson(const RoofLaunch& launch) {
  return {{"block", launch.block}, {"grid", launch.grid}, {"in_flight", launch.inFlight}};
}

Json frameOf(const ProblemText& shape) {
  Json frame = {{"kind", "bench"},
                {"who", "normc"},
                {"shape", shape.text()},
                {"norm", shape.norm},
                {"entry", name(shape.entry)},
                {"dtype", name(shape.data)},
                {"rows", *shape.rows},
                {"features", *shape.features}};
  if (shape.params != statisticsOf(shape.data)) frame["params"] = name(shape.params);
  return frame;
}

std::string whyWrong(const CudaDevice& device, const Kernels& kernels, const ProblemText& shape) {
  return bench::whyWrong(kernels, kernels.problem(shape.withoutSizes().text()),
                         {1, *shape.rows, *shape.features}, kChecked, &device);
}

/// The kernel that tuning chose, in a package of its own, on the buffers of the default.
struct Challenger {
  Challenger(const CudaDevice& device, const TrainingCall& ours, const ProblemText& shape,
             const Choice& choice, const BenchOptions& options)
      : kernels(choice.package, options.driver, device.index()),
        wrong(whyWrong(device, kernels, shape)),
        rival(kernels.plan(shape.text()), ours.buffers()),
        timer(device, [this](int set) { rival.call(set); }, ours.sets(), options.sampleSeconds) {}
  Kernels kernels;
  std::string wrong;
  measure::Subject rival;
  CudaTimer timer;
};

/// Tuned once for a footprint: the launches hardly depend on anything else.
class Launches {
 public:
  RoofLaunch of(const Roof& roof, RoofKind kind, const std::vector<RoofBuffers>& sets) {
    const auto [at, isNew] = known_.try_emplace({kind, sets.at(0).bytes});
    if (isNew) at->second = roof.tuned(kind, sets);
    return at->second;
  }

 private:
  std::map<std::pair<RoofKind, int64_t>, RoofLaunch> known_;
};

Json benchOne(const CudaDevice& device, const Kernels& kernels, const Roof& roof, Launches& launches,
              const ProblemText& shape, const BenchOptions& options) {
  Json record = frameOf(shape);
  if (const std::string wrong = whyWrong(device, kernels, shape); !wrong.empty()) {
    record["wrong"] = wrong;
    if (!options.evenWrong) return record;
  }
  const int64_t tensorBytes = *shape.rows * *shape.features * bytes(shape.data);
  const RoofKind kind = shape.isBackward() ? RoofKind::Triad : RoofKind::Copy;
  const TrainingCall call(device, kernels, shape, coldSets(device, bytesMoved(kind, tensorBytes)));
  const std::vector<RoofBuffers> buffers = call.buffers().roofBuffers();
  const RoofLaunch launch = launches.of(roof, kind, buffers);

  const CudaTimer ours(device, [&](int set) { call.enqueue(set); }, call.sets(), options.sampleSeconds);
  const CudaTimer theirs(
      device, [&](int set) { roof.enqueue(kind, launch, buffers[size_t(set)]); }, call.sets(),
      options.sampleSeconds);
  std::vector<const CudaTimer*> timers = {&ours, &theirs};
  std::optional<Challenger> challenger;
  if (const auto at = options.tuned.find(shape.text()); at != options.tuned.end()) {
    const Choice& choice = at->second;
    record["tuned"] = {{"verdict", choice.won ? "won" : "tie"}, {"schedule", choice.schedule}};
    if (choice.won) challenger.emplace(device, call, shape, choice, options);
    if (challenger && !challenger->wrong.empty()) record["tuned"]["wrong"] = challenger->wrong;
    if (challenger && challenger->wrong.empty()) timers.push_back(&challenger->timer);
  }
  const std::vector<measure::Samples> samples = race(timers, options.rounds);
  if (samples.size() > 2) {
    record["tuned"]["us"] = inMicroseconds(samples[2]);
    record["tuned"]["default_over_tuned"] = bench::toJson(measure::pairedRatio(samples[0], samples[2]));
    record["tuned"]["roof_time_over_tuned"] = bench::toJson(measure::pairedRatio(samples[1], samples[2]));
  }

  const package::Kernel& kernel = kernels.kernels().at(call.plan().kernel());
  const Traffic traffic = kernels.traffic(call.plan().kernel());
  const int64_t moved = traffic.total() * tensorBytes, roofMoved = bytesMoved(kind, tensorBytes);
  // The time that the roof would take for the same bytes, over the time of the kernel.
  measure::Samples roofForOurs;
  for (const double seconds : samples[1]) roofForOurs.push_back(seconds * double(moved) / double(roofMoved));
  record.update(speedOf(samples[0], moved));
  record["traffic"] = {{"reads", traffic.reads}, {"writes", traffic.writes}};
  record["roof"] = speedOf(samples[1], roofMoved);
  record["roof"].update({{"kind", name(kind)}, {"launch", toJson(launch)}});
  record["of_roof"] = bench::toJson(measure::pairedRatio(roofForOurs, samples[0]));
  record["roof_time_over_ours"] = bench::toJson(measure::pairedRatio(samples[1], samples[0]));
  record["rounds"] = options.rounds;
  record["calls_per_sample"] = ours.calls();
  record["sets"] = call.sets();
  record["schedule"] = kernel.schedule;
  record["isa"] = kernel.isa;
  return record;
}

}  // namespace

void benchAll(const CudaDevice& device, const Kernels& kernels, const std::vector<ProblemText>& shapes,
              const std::vector<Json>& before, const BenchOptions& options) {
  PastRuns past;
  for (const Json& record : before) {
    const std::string shape = record.value("shape", "");
    if (record.value("kind", "") != "bench") {
      past.begin(shape);
      continue;
    }
    const auto tuned = options.tuned.find(shape);
    past.end(shape, record.contains("error") || record.contains("wrong") ||
                        record.value("tuned", Json::object()).value("schedule", "") ==
                            (tuned == options.tuned.end() ? "" : tuned->second.schedule));
  }
  const Roof roof(device);
  Launches launches;
  for (const ProblemText& shape : shapes) {
    if (options.stop() || !device.alive()) return;
    if (past.ended(shape.text())) continue;
    Json record = frameOf(shape);
    if (past.broke(shape.text())) {
      record["error"] = "it did not end";
      options.record(record);
      continue;
    }
    options.record({{"kind", "begin"}, {"shape", shape.text()}});
    try {
      record = benchOne(device, kernels, roof, launches, shape, options);
    } catch (const std::runtime_error& error) {
      record["error"] = error.what();
    }
    options.record(record);
  }
}

void benchRoofs(const CudaDevice& device, bool quick, const std::function<bool()>& stop,
                const std::function<void(const Json&)>& record) {
  const Roof roof(device);
  std::vector<int64_t> sizes = {64};
  if (!quick) sizes = {4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20};
  for (const int64_t kibibytes : sizes)
    for (const RoofKind kind : {RoofKind::Copy, RoofKind::Triad}) {
      if (stop()) return;
      const int64_t bytes = kibibytes << 10;
      const int count = coldSets(device, bytesMoved(kind, bytes));
      std::vector<gate::CudaMemory> memory;
      std::vector<RoofBuffers> sets;
      for (int i = 0; i < count; ++i) {
        RoofBuffers& set = sets.emplace_back(RoofBuffers{.bytes = bytes});
        for (gate::DeviceAddress* tensor : {&set.to, &set.first, &set.second}) {
          if (tensor == &set.second && kind == RoofKind::Copy) continue;
          memory.push_back(filled(device, DType::F32, bytes, memory.size()));
          *tensor = memory.back().address();
        }
      }
      const RoofLaunch launch = roof.tuned(kind, sets);
      const CudaTimer timer(
          device, [&](int set) { roof.enqueue(kind, launch, sets[size_t(set)]); }, count, kRoofSeconds);
      Json result = speedOf(race({&timer}, 15)[0], bytesMoved(kind, bytes));
      result.update({{"kind", "roof"},
                     {"roof", name(kind)},
                     {"tensor_bytes", bytes},
                     {"launch", toJson(launch)},
                     {"sets", count}});
      record(result);
    }
}

}  // namespace normc::gpu
