#include "codegen/targets/cuda/CudaTarget.h"

#include <algorithm>
#include <map>

#include "codegen/targets/TypedTarget.h"
#include "codegen/targets/cuda/Compile.h"
#include "codegen/targets/cuda/Defaults.h"
#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Legality.h"
#include "codegen/targets/cuda/Space.h"
#include "codegen/targets/cuda/Traits.h"

namespace normc::codegen::cuda {
namespace {

/// Whole columns, backward: what a vector of features has beside its sums (second moment, scale, centre)
/// fills registers, so vectors are short and half as much is held; before sm_90, where ptxas finds less room,
/// of half as many rows at once.
void leaveRoom(Schedule& s, const Arch& arch) {
  constexpr int64_t kVector = 4;
  const int64_t held = arch.clusters() ? 32 : 24;
  if (s.vector > kVector) {
    s.team *= s.vector / kVector;
    s.vector = kVector;
  }
  if (!arch.clusters()) s.rows = std::min<int64_t>(s.rows, 2);
  if (s.hold) s.hold = std::max<int64_t>(1, held / (s.rows * s.vector));
}

std::vector<std::string> stagesOfCuda() { return {"sweeps", "gpu", "llvm", "ptx", "sass"}; }

class BoundCuda : public TypedTarget<BoundCuda, Schedule, parseSchedule> {
 public:
  BoundCuda(const Problem& problem, const Arch& arch) : problem_(problem), arch_(arch) {}

  std::vector<Candidate> defaults() override {
    std::vector<Candidate> list;
    for (Strategy strategy : legalStrategies(problem_)) {
      const KernelTraits& traits = traitsOf(strategy);
      Schedule schedule = defaultSchedule(traits, arch_, strategy);
      if (!list.empty() && traits.backward) leaveRoom(schedule, arch_);
      if (cuda::whyIllegal(traits, schedule, arch_)) continue;
      if (list.empty()) {
        list.push_back({schedule.text()});
        if (const auto few = scheduleForFewRows(traits, arch_))
          list.push_back({few->schedule.text(), {.rowsMax = few->rowsMax}});
      } else if (traits.sweepsColumnsTwice && !traits.updatesState) {
        // Whole columns by one block leave most of a device idle: for few rows alone, and where that saves
        // two launches. The update of nu, for a vector of features, asks for more registers than there are.
        const FewRows few = columnsOfFewRows(traits, schedule);
        list.push_back({few.schedule.text(), {.rowsMax = few.rowsMax}});
      }
    }
    return list;
  }
  std::optional<std::string> whyIllegal() override {
    if (auto reason = whyNoStrategy(problem_)) return reason;
    std::optional<std::string> reason = whyOnCpuAlone(problem_);
    for (Strategy strategy : legalStrategies(problem_)) {
      const KernelTraits& traits = traitsOf(strategy);
      reason = cuda::whyIllegal(traits, defaultSchedule(traits, arch_, strategy), arch_);
      if (!reason) return std::nullopt;
    }
    return reason;
  }
  std::vector<KnobSpace> knobs(const Workload&) override {
    std::vector<KnobSpace> spaces;
    for (Strategy strategy : legalStrategies(problem_))
      spaces.push_back(knobSpace(traitsOf(strategy), arch_, strategy));
    return spaces;
  }

  using BoundTarget::whyIllegal;
  std::optional<std::string> whyIllegal(const Schedule& s) {
    if (auto reason = whyIllegalOnSomeTarget(problem_, s.strategy)) return reason;
    return cuda::whyIllegal(traitsOf(s.strategy), s, arch_);
  }
  double predict(const Schedule& s, const Workload& workload) {
    return cuda::predict(traitsOf(s.strategy), s, arch_, workload);
  }
  std::string family(const Schedule& s) { return cuda::family(traitsOf(s.strategy), s); }
  /// Clusters of more than eight blocks, blocks of the grid that wait for each other, and more shared memory
  /// than a block has on the smaller devices, are not on every device; nor does every driver read the PTX of
  /// bulk copies.
  std::optional<std::string> fallback(const Schedule& schedule) {
    const KernelTraits& whole = traitsOf(schedule.strategy);
    Arch least = arch_;  // one block alone on the smallest multiprocessor
    least.sharedBytes = std::min(arch_.sharedBytes, kLeastShared);
    Schedule alone = schedule;
    alone.blocks = std::min<int64_t>(alone.blocks, 1);
    const bool large = schedule.cluster > limits::kPortableCluster || schedule.grid > 1 ||
                       (dynamicBytes(whole, schedule) > 0 && cuda::whyIllegal(whole, alone, least));
    if (!large && !schedule.prefetch.inBulk()) return std::nullopt;
    Arch lesser = arch_;
    lesser.number = 80;  // the last without clusters
    for (Strategy strategy : legalStrategies(problem_)) {
      const KernelTraits& traits = traitsOf(strategy);
      Schedule plain = defaultSchedule(traits, lesser, strategy);
      if (plain.prefetch.inBulk()) plain.prefetch = {};
      if (!cuda::whyIllegal(traits, plain, arch_)) return plain.text();
    }
    return std::nullopt;
  }
  llvm::Expected<std::string> emit(const Schedule& s, llvm::StringRef name) const {
    auto stage = findStage(name, stagesOfCuda());
    if (!stage) return stage.takeError();
    return emitStage(problem_, s, arch_, *stage);
  }
  llvm::Expected<std::vector<PassText>> passes(const Schedule& s, llvm::ArrayRef<std::string> shown) const {
    return passTexts(problem_, s, arch_, shown);
  }
  llvm::Expected<CompiledKernel> compile(const Schedule& s, llvm::StringRef symbol,
                                         const CubinOptions& cubin) const {
    return compileKernel(problem_, s, arch_, symbol, cubin);
  }

 private:
  /// Planning takes a millisecond, and legality is asked for thousands of schedules of one problem.
  const KernelTraits& traitsOf(Strategy strategy) {
    const auto [at, isNew] = traits_.try_emplace(strategy);
    if (isNew) at->second = cuda::traitsOf(problem_, strategy);
    return at->second;
  }

  Problem problem_;
  Arch arch_;
  std::map<Strategy, KernelTraits> traits_;
};

class CudaTarget : public Target {
 public:
  explicit CudaTarget(Arch arch) : arch_(std::move(arch)) {}
  llvm::StringRef name() const override { return arch_.name; }
  llvm::StringRef device() const override { return "cuda"; }
  std::vector<std::string> stages() const override { return stagesOfCuda(); }
  using Target::bind;
  std::shared_ptr<BoundTarget> bind(const Problem& problem) const override {
    return std::make_shared<BoundCuda>(problem, arch_);
  }

 private:
  Arch arch_;
};

}  // namespace

llvm::Expected<TargetPtr> findTarget(llvm::StringRef name) {
  if (!isArchName(name)) return TargetPtr();
  auto arch = findArch(name);
  if (!arch) return arch.takeError();
  return std::make_shared<CudaTarget>(std::move(*arch));
}

std::vector<std::string> targetNames() {
  std::vector<std::string> names;
  for (llvm::StringRef arch : defaultArchs()) names.push_back(arch.str());
  return names;
}

}  // namespace normc::codegen::cuda
