#include "bench/gpu/Sweep.h"

#include <optional>

#include "autotune/measure/CudaTimer.h"
#include "autotune/measure/Subject.h"
#include "autotune/tune/PlanFile.h"
#include "bench/kit/Kernels.h"
#include "bench/kit/Text.h"

namespace normc::gpu {
namespace {

using gate::CudaDevice;
using namespace measure;

std::string keyOf(const Json& record) {
  return record.value("shape", "") + " " + record.value("schedule", "");
}

PastRuns pastOf(const std::vector<Json>& before) {
  PastRuns past;
  for (const Json& record : before)
    record.value("kind", "") == "sweep" ? past.end(keyOf(record)) : past.begin(keyOf(record));
  return past;
}

/// The buffers of one task and the roof of its footprint: all candidates of the task use them.
class Course {
 public:
  Course(const CudaDevice& device, const Roof& roof, const std::string& folder, const tune::Shipped& shipped,
         const SweepOptions& options)
      : device_(device),
        options_(options),
        first_(folder + "/" + shipped.made.at(0).package, options.driver, device.index()),
        problem_(first_.problem(shipped.setting.task.problem.text())),
        call_(problem_.text(shipped.setting.task.segments, shipped.setting.task.rows)),
        buffers_(first_.plan(call_), problem_, extentsOf(shipped.setting.task), {.sets = setsOf(shipped)},
                 &device),
        kind_(isBackward(problem_.entry) ? RoofKind::Triad : RoofKind::Copy),
        sets_(buffers_.roofBuffers()),
        launch_(roof.tuned(kind_, sets_)),
        roof_(
            device, [&, this](int set) { roof.enqueue(kind_, launch_, sets_[size_t(set)]); }, buffers_.sets(),
            options.sampleSeconds) {}

  /// Adds the times of a candidate to its record.
  void time(const std::string& package, Json& record) const {
    const bench::Kernels kernels(package, options_.driver, device_.index());
    const Subject subject(kernels.plan(call_), buffers_);
    const CudaTimer ours(
        device_, [&](int set) { subject.call(set); }, buffers_.sets(), options_.sampleSeconds);
    const std::vector<Samples> samples = race({&ours, &roof_}, options_.rounds);
    record["us"] = bench::inMicroseconds(samples[0]);
    record["roof_us"] = bench::inMicroseconds(samples[1]).at("median");
    record["roof_time_over_ours"] = bench::toJson(pairedRatio(samples[1], samples[0]));
  }

 private:
  static Extents extentsOf(const tune::Task& task) { return {task.segments, task.rows, task.features}; }
  int setsOf(const tune::Shipped& shipped) const {
    return coldSets(device_, Buffers::bytesOfSet(problem_, extentsOf(shipped.setting.task)));
  }

  const CudaDevice& device_;
  const SweepOptions& options_;
  bench::Kernels first_;
  Problem problem_;
  std::string call_;
  Buffers buffers_;
  RoofKind kind_;
  std::vector<RoofBuffers> sets_;
  RoofLaunch launch_;
  CudaTimer roof_;
};

}  // namespace

void sweepBundle(const CudaDevice& device, const std::string& folder, const std::vector<Json>& before,
                 const SweepOptions& options) {
  const Roof roof(device);
  const PastRuns past = pastOf(before);
  for (const tune::Shipped& shipped : tune::readPlan(folder)) {
    const tune::Task& task = shipped.setting.task;
    const std::string shape = task.problem.withSizes(task.segments, task.rows).text();
    if (shape.find(options.only) == shape.npos) continue;
    std::optional<Course> course;
    for (size_t i = 0; i < shipped.points.size(); ++i) {
      if (options.stop() || !device.alive()) return;
      Json record = {{"kind", "begin"}, {"shape", shape}, {"schedule", shipped.points[i].schedule}};
      if (past.ended(keyOf(record))) continue;
      const bool broke = past.broke(keyOf(record));
      if (!broke) options.record(record);
      record["kind"] = "sweep";
      record["default"] = i == 0;
      record["family"] = shipped.points[i].family;
      record["predicted"] = shipped.points[i].predicted;
      try {
        if (broke) throw std::runtime_error("it did not end");
        if (!course) course.emplace(device, roof, folder, shipped, options);
        course->time(folder + "/" + shipped.made[i].package, record);
      } catch (const std::runtime_error& error) {
        record["error"] = error.what();
      }
      if (!device.alive()) return;
      options.record(record);
    }
  }
}

}  // namespace normc::gpu
