#include "autotune/gate/Trials.h"

#include <algorithm>
#include <set>

#include "dsl/Numbers.h"
#include "dsl/Print.h"
#include "runtime/abi/Sizes.h"

namespace normc::gate {

std::string Trial::text(const Problem& problem) const {
  std::string t = extents.segments > 1 ? std::to_string(extents.segments) + "x" : "";
  t += std::to_string(extents.rows) + "x" + std::to_string(extents.features) + " " + std::string(name(data));
  auto add = [&](const char* key, int64_t value) {
    if (value) t += " " + std::string(key) + "=" + std::to_string(value);
  };
  add("step", step);
  if (farState) t += " far_state";
  add("row_padding", placement.rowPadding);
  add("segment_padding", placement.segmentPadding);
  add("misalign", placement.misalign);
  add("skew", placement.skew);
  if (placement.reversed) t += " reversed";
  if (placement.inPlace) t += " in_place";
  if (!placement.stateInPlace) t += " state_apart";
  if (placement.guardPages) t += " guard_pages";
  for (const auto& [number, value] : numbers) t += " " + number + "=" + numberText(value);
  for (const std::string& output : placement.leaveOut) t += " without_" + output;
  if (problem.mask) t += " mask=" + std::string(name(mask));
  if (nanPadding) t += " nan_padding";
  return t + " seed=" + std::to_string(seed);
}

/// The most elements in one segment of a trial.
static constexpr int64_t kElementsOfSegment = 1 << 20;
/// The most rows of a standard trial.
static constexpr int64_t kMostRows = 129;

/// Trials with very long rows have fewer rows, to limit the time and memory of the reference.
static int64_t mostRows(int64_t features) {
  return std::max<int64_t>(kElementsOfSegment / std::max<int64_t>(features, 1), 5);
}

/// The segments of the largest trial, and about the bytes that each of its elements takes: a trial of RMSNorm
/// inference of 20 million features took 7.3 GB and more.
static constexpr int64_t kMostSegments = 3, kBytesOfElement = 128;

int64_t bytesOfTrials(const Problem& problem, int64_t features) {
  const int64_t rows = std::min(kMostRows, mostRows(features)),
                segments = problem.segmented ? kMostSegments : 1;
  return package::multiply(package::multiply(rows * segments, features), kBytesOfElement);
}

/// A task of a default schedule has 512 rows at most, of 128 KiB at most. The reference takes about 100 ns
/// per element.
static constexpr int64_t kRowsOfManyTasks = 1025, kElementsOfManyTasks = 1 << 20;

/// Returns the numbers of steps behind which the norm does something else.
static std::vector<int64_t> limitsOf(const Spec& spec, const Numbers& numbers) {
  std::vector<int64_t> limits;
  for (const char* limit : {"warmup_steps", "renorm_start"})
    if (const auto at = numbers.find(limit); at != numbers.end()) limits.push_back(int64_t(at->second));
  if (spec.divideBy == DivideBy::Window || spec.approximate.nu == Nu::Window)
    limits.push_back(spec.window.size);
  return limits;
}

/// Returns numbers of steps before a trial: those around each limit of the norm, so that its own step is the
/// last one before the limit, the limit, and the first one behind it.
static std::set<int64_t> stepsAroundLimits(const Spec& spec, const Numbers& numbers) {
  std::set<int64_t> steps;
  for (const int64_t limit : limitsOf(spec, numbers))
    for (const int64_t step : {limit - 2, limit - 1, limit})
      if (step >= 0) steps.insert(step);
  return steps;
}

static Numbers defaultsOf(const Problem& problem) {
  Numbers defaults;
  for (const Number& number : normc::numbers(*problem.spec)) defaults[number.name] = number.value;
  return defaults;
}

int64_t stepsBehindLimits(const Problem& problem) {
  const std::vector<int64_t> limits = limitsOf(*problem.spec, defaultsOf(problem));
  return limits.empty() ? 1 : *std::max_element(limits.begin(), limits.end()) + 1;
}

/// Returns numbers that are not the defaults, of which no two are equal. Each is of the size of the data, so
/// that results show which number a kernel read.
static Numbers otherNumbers(const Problem& problem) {
  static const Numbers kOthers{
      {"epsilon", 0.25},      {"pre_epsilon", 0.6},   {"decay", 0.625},     {"backward_decay", 0.375},
      {"clamp_gamma", 0.875}, {"warmup_steps", 24},   {"renorm_rmax", 2.5}, {"renorm_dmax", 0.15},
      {"renorm_start", 8},    {"scale_offset", -1.5}, {"mod_offset", 3.5},  {"quant_floor", 0.7},
  };
  Numbers others;
  for (const auto& [name, value] : defaultsOf(problem)) {
    const double other = kOthers.at(name);
    others[name] = other == value ? other / 2 : other;
  }
  return others;
}

std::vector<Trial> trialsOfNumbers(const Problem& problem, int64_t features) {
  const Numbers numbers = otherNumbers(problem);
  std::vector<Trial> trials;
  const auto add = [&](int64_t rows, HardInput data, int64_t step, bool farState) {
    rows = std::min(rows, mostRows(features));
    trials.push_back({.extents = {problem.segmented ? 2 : 1, rows, features},
                      .data = data,
                      .step = step,
                      .farState = farState,
                      .numbers = numbers,
                      .seed = 40 + uint64_t(step)});
  };
  for (const HardInput data : {HardInput::Normal, HardInput::ConstantRows, HardInput::ConstantColumns})
    add(33, data, 3, false);
  if (!problem.spec->running) return trials;
  for (const int64_t step : stepsAroundLimits(*problem.spec, numbers)) add(9, HardInput::Normal, step, false);
  add(0, HardInput::Normal, 20000, false);
  add(33, HardInput::Normal, 20000, problem.spec->renorm.kind != Renorm::None);
  return trials;
}

std::optional<Trial> trialOfManyTasks(int64_t features) {
  const int64_t rows = std::min(kRowsOfManyTasks, kElementsOfManyTasks / std::max<int64_t>(features, 1));
  if (rows <= kMostRows) return std::nullopt;
  return Trial{.extents = {1, rows, features}, .step = 2, .seed = 3};
}

std::vector<Trial> standardTrials(const Problem& problem, int64_t features) {
  std::vector<Trial> trials;
  bool segmented = problem.segmented, state = problem.spec->running.has_value();
  const int64_t most = mostRows(features);
  auto extents = [&](int64_t rows, int64_t segments) {
    return Extents{segmented ? segments : 1, std::min(rows, most), features};
  };
  for (HardInput data : allHardInputs()) trials.push_back({.extents = extents(33, 3), .data = data});
  for (int64_t rows : {int64_t(0), int64_t(1), int64_t(3), int64_t(5), kMostRows})
    trials.push_back({.extents = extents(rows, 2), .seed = uint64_t(rows) + 2});
  if (state) {
    std::set<int64_t> steps = stepsAroundLimits(*problem.spec, defaultsOf(problem));
    steps.insert({1, 5, 3999, 4000, 20000});  // early and late ones too
    for (int64_t step : steps) trials.push_back({.extents = extents(33, 3), .step = step});
    trials.push_back({.extents = extents(0, 2), .step = 20000});  // the running statistics serve in its place
  }
  if (problem.spec->renorm.kind != Renorm::None)  // behind its limits
    trials.push_back({.extents = extents(33, 3), .step = 20000, .farState = true});
  if (state)  // f32 does not hold the squares of huge data over a far smaller deviation
    for (HardInput data : allHardInputs())
      trials.push_back(
          {.extents = extents(9, 2), .data = data, .step = 20000, .farState = data != HardInput::Huge});
  if (problem.mask)
    for (HardMask mask : allHardMasks())
      trials.push_back(
          {.extents = extents(37, 3), .data = HardInput::Drift, .mask = mask, .nanPadding = true, .step = 7});
  Extents odd = extents(21, 2);
  trials.push_back(
      {.extents = odd, .step = 3, .placement = {.rowPadding = 3, .segmentPadding = segmented ? 5 : 0}});
  trials.push_back({.extents = odd, .step = 3, .placement = {.rowPadding = 1, .reversed = true}});
  trials.push_back(
      {.extents = odd, .step = 3, .placement = {.rowPadding = 64, .reversed = true}});  // rows stay aligned
  trials.push_back({.extents = odd, .step = 3, .placement = {.misalign = 1}});
  trials.push_back({.extents = odd, .step = 3, .placement = {.misalign = 2, .skew = 1}});
  trials.push_back({.extents = odd, .step = 3, .placement = {.inPlace = true, .stateInPlace = false}});
  if (writesSaved(problem.entry))
    trials.push_back({.extents = odd, .step = 3, .placement = {.leaveOut = {"saved", "state_out"}}});
  if (isBackward(problem.entry)) {
    const Has has = hasOf(problem);
    std::vector<std::string> wide, others;
    for (const TensorInfo& each : kTensorTable)
      if (each.mayBeLeftOut() && isTaken(each, problem.entry, has))
        (isXSized(each.tensor, has) ? wide : others).emplace_back(each.name);
    // A call that leaves out all outputs is refused.
    if (!others.empty() || (problem.spec->running && problem.parts().writesState()))
      trials.push_back({.extents = odd, .step = 3, .placement = {.leaveOut = wide}});
    others.emplace_back("state_out");
    trials.push_back({.extents = odd, .step = 3, .placement = {.leaveOut = others}});
  }
  return trials;
}

}  // namespace normc::gate
