#include "bench/cpu/Heat.h"

#include <algorithm>

#include "autotune/measure/Neighbours.h"
#include "bench/cpu/OneDnn.h"
#include "bench/cpu/apart/Apart.h"
#include "bench/kit/TrainingCall.h"

namespace normc::bench {
namespace {

/// Elements that are checked before a race.
constexpr int64_t kChecked = 1 << 18;

/// Threads that slept while others ran are awake after so long, where they do not share the caller's core.
constexpr double kAwake = 2e-3;

class Starters {
 public:
  Starters(Heat& heat, Tensors& tensors) : heat_(heat), tensors_(tensors) {}

  void add(Runner runner, const std::string& norm, Traffic traffic, std::unique_ptr<Contestant> contestant,
           const std::string& why = {}) {
    if (!contestant) {
      heat_.notRun.push_back(std::string(name(runner)) + " " + why);
      return;
    }
    heat_.entrants.push_back({runner, norm, traffic, {}, contestant->implementation()});
    contestants_.push_back(std::move(contestant));
  }

  /// Both copies of this traffic, once.
  void addCopies(Traffic traffic) {
    if (heat_.fasterCopy(traffic)) return;
    for (const auto& [runner, stores] :
         {std::pair(Runner::CachedCopy, Stores::Cached), std::pair(Runner::StreamingCopy, Stores::Streaming)})
      add(runner, "", traffic,
          makeCopy(tensors_.inputs(), tensors_.outputs(), tensors_.bytes(), traffic, stores,
                   heat_.plan.threads));
  }

  /// Every way to run the norm apart from what surrounds it; the race decides between them.
  void addApart(const Kernels& kernels, const Problem& problem, Traffic traffic, int threads) {
    std::string why;
    for (const apart::Way& way : apart::kWays)
      if (auto peer = apart::make(kernels, problem, tensors_, threads, way, scratch_, why))
        add(Runner::Apart, problem.spec->name, traffic, std::move(peer));
    if (!why.empty()) add(Runner::Apart, problem.spec->name, traffic, nullptr, why);
  }

  void race(const RaceOptions& options) {
    std::vector<Contestant*> contestants;
    for (const auto& contestant : contestants_) contestants.push_back(contestant.get());
    std::vector<Samples> samples = bench::race(contestants, options);
    for (size_t i = 0; i < samples.size(); ++i) heat_.entrants[i].samples = std::move(samples[i]);
    std::erase_if(heat_.entrants, [&](const Entrant& e) { return e.runner == Runner::Apart && isBeaten(e); });
  }

 private:
  /// True if the same computation was faster in another way.
  bool isBeaten(const Entrant& entrant) const {
    return std::ranges::any_of(heat_.entrants, [&](const Entrant& other) {
      return other.runner == entrant.runner && other.norm == entrant.norm &&
             median(other.samples) < median(entrant.samples);
    });
  }

  Heat& heat_;
  Tensors& tensors_;
  apart::Scratch scratch_;
  std::vector<std::unique_ptr<Contestant>> contestants_;
};

/// Adds our kernel; false if it cannot run or is wrong. The first argument names its generator.
bool addOurs(Starters& starters, Runner runner, const Kernels& kernels, const Problem& problem,
             Tensors& tensors, int threads, Traffic& traffic) {
  const auto refuse = [&](const std::string& why) {
    starters.add(runner, problem.spec->name, {}, nullptr, "cannot run " + problem.text() + ": " + why);
    return false;
  };
  try {
    const Shape& shape = tensors.shape;
    const Extents sizes{shape.segments, shape.rows, shape.features};
    const std::string wrong = runner == Runner::Before ? "" : whyWrong(kernels, problem, sizes, kChecked);
    if (!wrong.empty()) return refuse("its result is wrong: " + wrong);
    auto ours = std::make_unique<TrainingCall>(kernels, problem, tensors, threads);
    traffic = kernels.traffic(ours->plan().kernel());
    starters.add(runner, problem.spec->name, traffic, std::move(ours));
    return true;
  } catch (const host::Error& error) {
    return refuse(error.what());
  }
}

}  // namespace

std::string HeatPlan::text(const std::string& sizes) const {
  return std::string(normc::name(entry)) + " " + std::string(normc::name(data)) + ", " + sizes + place +
         ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

const char* name(Runner runner) {
  switch (runner) {
    case Runner::Ours:
      return "normc";
    case Runner::Halide:
      return "Halide";
    case Runner::Before:
      return "before";
    case Runner::Apart:
      return "apart";
    case Runner::OneDnn:
      return "oneDNN";
    case Runner::Torch:
      return "PyTorch";
    case Runner::TorchCompiled:
      return "PyTorch compiled";
    case Runner::CachedCopy:
      return "copy";
    case Runner::StreamingCopy:
      return "streaming copy";
  }
  return "";
}

const Entrant* Heat::find(Runner runner, const std::string& norm) const {
  const auto at = std::find_if(entrants.begin(), entrants.end(),
                               [&](const Entrant& e) { return e.runner == runner && e.norm == norm; });
  return at == entrants.end() ? nullptr : &*at;
}

const Entrant* Heat::fasterCopy(Traffic traffic) const {
  const Entrant* best = nullptr;
  for (const Entrant& e : entrants) {
    if ((e.runner != Runner::CachedCopy && e.runner != Runner::StreamingCopy) || e.traffic != traffic)
      continue;
    if (!best || (!e.samples.empty() && median(e.samples) < median(best->samples))) best = &e;
  }
  return best;
}

double Heat::gigabytesPerSecond(const Entrant& entrant) const {
  return double(entrant.traffic.total()) * double(plan.tensorBytes()) / median(entrant.samples) * 1e-9;
}

std::vector<Problem> bareProblems(const std::vector<Problem>& problems) {
  std::vector<Problem> all;
  for (const Problem& problem : problems)
    if (auto bare = apart::bareOf(problem)) all.push_back(*std::move(bare));
  return all;
}

Tensors tensorsOf(const HeatPlan& plan, const std::vector<Problem>& problems) {
  Has all{.scale = true,
          .bias = true,
          .gateShape = TensorShape::PerFeature,
          .modulationShape = TensorShape::PerSegment};
  bool around = false;
  for (const Problem& problem : problems) {
    const Has has = hasOf(problem);
    around = around || apart::bareOf(problem);
    for (bool Has::* each : {&Has::residual, &Has::residualBefore, &Has::stream, &Has::gate, &Has::gateBefore,
                             &Has::modScale, &Has::modShift, &Has::ownResidualGradient})
      all.*each = all.*each || has.*each;
    const auto grow = [&](TensorShape& shape, TensorShape with) {
      if (with == TensorShape::Elements || shape == TensorShape::PerFeature) shape = with;
    };
    if (has.gate) grow(all.gateShape, has.gateShape);
    if (has.modScale || has.modShift) grow(all.modulationShape, has.modulationShape);
  }
  const bool gradients = isBackward(plan.entry);
  if (!around) return {plan.data, plan.shape, gradients};
  Tensors tensors(plan.data, {1, 1, 1}, gradients);
  const Shape& shape = tensors.shape = plan.shape;
  static_cast<TensorSet&>(tensors) =
      TensorMaker{
          .types = {.data = plan.data, .params = tensors.params, .output = plan.data, .stream = plan.data},
          .extents = {shape.segments, shape.rows, shape.features},
          .has = all,
          .backward = gradients}
          .make();
  return tensors;
}

Heat runHeat(const HeatPlan& plan, const std::vector<Problem>& problems, const Kernels& kernels,
             const OtherKernels& others, bool oneDnn, TorchPeer* torch, RaceOptions options) {
  Heat heat;
  heat.plan = plan;
  Tensors tensors = tensorsOf(plan, problems);
  {
    Starters starters(heat, tensors);
    for (const Problem& problem : problems) {
      Traffic traffic;
      if (!addOurs(starters, Runner::Ours, kernels, problem, tensors, plan.threads, traffic)) continue;
      Traffic theirs;
      if (others.halide)
        addOurs(starters, Runner::Halide, *others.halide, problem, tensors, plan.threads, theirs);
      if (others.before)
        addOurs(starters, Runner::Before, *others.before, problem, tensors, plan.threads, theirs);
      starters.addApart(kernels, problem, traffic, plan.threads);
      starters.addCopies(traffic);
      std::string why;
      if (oneDnn) {
        auto peer = makeOneDnn(problem, tensors, plan.threads, why);
        starters.add(Runner::OneDnn, problem.spec->name, traffic, std::move(peer), why);
      }
      if (torch) {
        auto peer = torch->make(problem, plan.shape, plan.threads, false, why);
        starters.add(Runner::Torch, problem.spec->name, traffic, std::move(peer), why);
        if (!apart::bareOf(problem)) continue;
        peer = torch->make(problem, plan.shape, plan.threads, true, why);
        starters.add(Runner::TorchCompiled, problem.spec->name, traffic, std::move(peer), why);
      }
    }
    const double peerBefore = torch ? torch->seconds() : 0;
    if (plan.threads > 1) {
      options.warmUpSeconds = kAwake;
      options.ownCores = true;
    }
    const Neighbours neighbours;
    starters.race(options);
    heat.busyCores = neighbours.busyCores(torch ? torch->seconds() - peerBefore : 0);
  }
  if (torch) torch->clear();
  return heat;
}

}  // namespace normc::bench
