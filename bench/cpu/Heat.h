// One heat: every contestant on one shape, all in one race.
#pragma once

#include <string>
#include <vector>

#include "autotune/measure/Contestant.h"
#include "bench/cpu/Torch.h"
#include "bench/kit/Kernels.h"
#include "dsl/Problem.h"

namespace normc::bench {
using namespace measure;

struct HeatPlan {
  Entry entry = Entry::Forward;
  DType data = DType::F32;
  Shape shape;
  int threads = 1;
  std::string place;  ///< "in cache", "in memory", "128 rows"

  int64_t tensorBytes() const { return shape.elements() * bytes(data); }
  /// "forward f32, 128 x 768, in cache, 1 thread"
  std::string text() const { return text(shape.text() + ", "); }
  /// The same without sizes: what heats that differ in their sizes alone have in common.
  std::string conditions() const { return text(""); }

 private:
  std::string text(const std::string& sizes) const;
};

enum class Runner { Ours, Halide, Before, Apart, OneDnn, Torch, TorchCompiled, CachedCopy, StreamingCopy };
const char* name(Runner);

/// Kernels of the same problems: from the other generator, and of a package that another build compiled.
/// Either may be null.
struct OtherKernels {
  const Kernels* halide = nullptr;
  const Kernels* before = nullptr;
};

struct Entrant {
  Runner runner;
  std::string norm;            ///< empty for copies
  Traffic traffic;             ///< of our kernel for this norm, or of the copy
  Samples samples;             ///< seconds of one call
  std::string implementation;  ///< which code ran, where the contestant says
};

struct Heat {
  HeatPlan plan;
  std::vector<Entrant> entrants;
  std::vector<std::string> notRun;  ///< kernels and peers that could not run, and why
  double busyCores = 0;             ///< that other programs kept busy during the race

  const Entrant* find(Runner runner, const std::string& norm) const;
  /// The copy of this traffic that was faster, cached or streaming.
  const Entrant* fasterCopy(Traffic) const;
  /// The speed at which an entrant moves its traffic.
  double gigabytesPerSecond(const Entrant&) const;
};

/// Returns the problems that the kernels of `problems` are compared with, and that need kernels of their own.
std::vector<Problem> bareProblems(const std::vector<Problem>&);

/// Returns one set of tensors for all problems: of each that one of them has, with the most elements.
Tensors tensorsOf(const HeatPlan&, const std::vector<Problem>&);

/// `problems`: those of the heat's entry, type and features, compiled in `kernels`. Every kernel of ours
/// passes the gate on this very shape, or a smaller one where it is large, before it is timed; those of a
/// build before are timed as they are, since what they got wrong may be what was changed. Norms with
/// something around them also run apart from it, for which `kernels` has the norms of bareProblems(); of all
/// ways to do so the fastest is kept. `torch` may be null.
Heat runHeat(const HeatPlan&, const std::vector<Problem>& problems, const Kernels&, const OtherKernels&,
             bool oneDnn, TorchPeer* torch, RaceOptions);

}  // namespace normc::bench
