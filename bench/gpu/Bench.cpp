#include "bench/gpu/Bench.h"

#include <algorithm>
#include <map>
#include <set>

#include "autotune/gate/Gate.h"
#include "bench/gpu/Subject.h"

namespace normc::gpu {
namespace {

using gate::CudaDevice;

constexpr double kMicro = 1e6, kGiga = 1e-9;
/// Elements that are checked before a kernel is timed: the reference takes some 100 ns for each.
constexpr int64_t kChecked = 1 << 16;
constexpr double kRoofSeconds = 2e-3;

/// Why a kernel must not be timed; empty where it is right.
std::string whyWrong(const CudaDevice& device, const Problem& problem, const host::Plan& plan,
                     const Shape& shape) {
  gate::Trial trial;
  trial.extents = {1, std::clamp<int64_t>(kChecked / shape.features, 3, shape.rows), shape.features};
  trial.step = 10000;
  const gate::Verdict verdict = gate::judge(plan.get(), problem, trial, &device);
  return verdict.ok ? "" : verdict.text;
}

Json inMicroseconds(const measure::Samples& samples) {
  const measure::Ratio m = middle(samples);
  return {{"median", m.value * kMicro}, {"low", m.low * kMicro}, {"high", m.high * kMicro}};
}

Json toJson(const measure::Ratio& ratio) {
  return {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
}

Json toJson(const RoofLaunch& launch) {
  return {{"block", launch.block}, {"grid", launch.grid}, {"in_flight", launch.inFlight}};
}

Json frameOf(const Shape& shape) {
  return {
      {"kind", "bench"},      {"who", "normc"},       {"shape", shape.text()}, {"norm", shape.norm},
      {"entry", shape.entry}, {"dtype", shape.dtype}, {"rows", shape.rows},    {"features", shape.features}};
}

/// The kernel that tuning chose, in a package of its own.
struct Challenger {
  Challenger(const CudaDevice& device, const Subject& subject, const Shape& shape, const Choice& choice,
             const BenchOptions& options)
      : kernels(choice.package, options.driver, device.index()),
        wrong(whyWrong(device, kernels.problem(shape.problem()), kernels.plan(shape.problem()), shape)),
        rival(kernels.plan(shape.text()), subject.buffers()),
        timer(device, [this](int set) { rival.call(set); }, subject.sets(), options.sampleSeconds) {}
  Kernels kernels;
  std::string wrong;
  measure::Subject rival;
  CudaTimer timer;
};

/// Returns the tuning result of a record; of a win without its times.
Json toJson(const Choice& choice) {
  return {{"verdict", choice.won ? "won" : "tie"}, {"schedule", choice.schedule}};
}

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
              const Shape& shape, const BenchOptions& options) {
  Json record = frameOf(shape);
  if (const std::string wrong =
          whyWrong(device, kernels.problem(shape.problem()), kernels.plan(shape.problem()), shape);
      !wrong.empty()) {
    record["wrong"] = wrong;
    if (!options.evenWrong) return record;
  }
  const Subject subject(device, kernels, shape, coldSets(device, Subject::footprint(shape)));
  const RoofKind kind = shape.entry == "backward" ? RoofKind::Triad : RoofKind::Copy;
  const std::vector<RoofBuffers> buffers = subject.buffers().roofBuffers();
  const RoofLaunch launch = launches.of(roof, kind, buffers);

  const CudaTimer ours(device, [&](int set) { subject.enqueue(set); }, subject.sets(), options.sampleSeconds);
  const CudaTimer theirs(
      device, [&](int set) { roof.enqueue(kind, launch, buffers[size_t(set)]); }, subject.sets(),
      options.sampleSeconds);
  std::vector<const CudaTimer*> timers = {&ours, &theirs};
  const std::optional<Choice> choice = options.tuned.find(shape);
  std::optional<Challenger> challenger;
  if (choice) record["tuned"] = toJson(*choice);
  if (choice && choice->won) {
    challenger.emplace(device, subject, shape, *choice, options);
    if (!challenger->wrong.empty()) record["tuned"]["wrong"] = challenger->wrong;
    if (challenger->wrong.empty()) timers.push_back(&challenger->timer);
  }
  const std::vector<measure::Samples> samples = race(timers, options.rounds);
  if (samples.size() > 2) {
    record["tuned"]["us"] = inMicroseconds(samples[2]);
    record["tuned"]["default_over_tuned"] = toJson(measure::pairedRatio(samples[0], samples[2]));
    record["tuned"]["roof_time_over_tuned"] = toJson(measure::pairedRatio(samples[1], samples[2]));
  }

  const Traffic traffic = kernels.traffic(subject.kernel());
  const double moved = double(traffic.total()) * double(shape.tensorBytes());
  const double roofMoved = double(bytesMoved(kind, shape.tensorBytes()));
  // How long the roof would take for the bytes of ours, over how long ours took.
  measure::Samples roofForOurs;
  for (const double seconds : samples[1]) roofForOurs.push_back(seconds * moved / roofMoved);
  const package::Kernel& kernel = kernels.kernels().at(subject.kernel());
  record["us"] = inMicroseconds(samples[0]);
  record["gbps"] = moved / middle(samples[0]).value * kGiga;
  record["traffic"] = {{"reads", traffic.reads}, {"writes", traffic.writes}};
  record["roof"] = {{"kind", name(kind)},
                    {"us", inMicroseconds(samples[1])},
                    {"gbps", roofMoved / middle(samples[1]).value * kGiga},
                    {"launch", toJson(launch)}};
  record["of_roof"] = toJson(measure::pairedRatio(roofForOurs, samples[0]));
  record["roof_time_over_ours"] = toJson(measure::pairedRatio(samples[1], samples[0]));
  record["rounds"] = options.rounds;
  record["calls_per_sample"] = ours.calls();
  record["sets"] = subject.sets();
  record["schedule"] = kernel.schedule;
  record["isa"] = kernel.isa;
  return record;
}

}  // namespace

void benchAll(const CudaDevice& device, const Kernels& kernels, const std::vector<Shape>& shapes,
              const std::vector<Json>& before, const BenchOptions& options) {
  std::map<std::string, int> open;  // begun more often than ended
  std::set<std::string> ended;
  for (const Json& record : before) {
    const std::string shape = record.value("shape", "");
    if (record.value("kind", "") != "bench") {
      ++open[shape];
      continue;
    }
    --open[shape];
    const std::string schedule = record.value("tuned", Json::object()).value("schedule", "");
    if (record.contains("error") || record.contains("wrong") || options.tuned.scheduleOf(shape) == schedule)
      ended.insert(shape);
  }
  const Roof roof(device);
  Launches launches;
  for (const Shape& shape : shapes) {
    if (options.stop() || !device.alive()) return;
    if (ended.contains(shape.text())) continue;
    Json record = frameOf(shape);
    if (open[shape.text()] > 0) {
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
        for (int tensor = 0; tensor < (kind == RoofKind::Copy ? 2 : 3); ++tensor)
          memory.push_back(filled(device, DType::F32, bytes, unsigned(10 * i + tensor)));
        const auto* last = &memory.back();
        sets.push_back({last->address(), (last - 1)->address(),
                        kind == RoofKind::Triad ? (last - 2)->address() : 0, bytes});
      }
      const RoofLaunch launch = roof.tuned(kind, sets);
      const CudaTimer timer(
          device, [&](int set) { roof.enqueue(kind, launch, sets[size_t(set)]); }, count, kRoofSeconds);
      const std::vector<measure::Samples> samples = race({&timer}, 15);
      record({{"kind", "roof"},
              {"roof", name(kind)},
              {"tensor_bytes", bytes},
              {"us", inMicroseconds(samples[0])},
              {"gbps", double(bytesMoved(kind, bytes)) / middle(samples[0]).value * kGiga},
              {"launch", toJson(launch)},
              {"sets", count}});
    }
}

}  // namespace normc::gpu
