#include "codegen/targets/cuda/CudaTarget.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "codegen/targets/cuda/Compile.h"
#include "codegen/targets/cuda/Space.h"

namespace normc::codegen::cuda {
namespace {

/// Whole columns, backward: what a vector of features has beside its sums (second moment, scale, centre)
/// fills registers, so vectors are short and half as much is held; before sm_90, where ptxas finds less room,
/// of half as many rows at once.
void leaveRoom(Schedule& s, const Arch& arch) {
  constexpr int64_t kVector = 4;
  const int64_t held = arch.clusters() ? 32 : 24;
  if (s.vector > kVector) s.team *= s.vector / kVector, s.vector = kVector;
  if (!arch.clusters()) s.rows = std::min<int64_t>(s.rows, 2);
  if (s.hold) s.hold = std::max<int64_t>(1, held / (s.rows * s.vector));
}

class CudaTarget : public Target {
 public:
  explicit CudaTarget(Arch arch) : arch_(std::move(arch)) {}
  llvm::StringRef name() const override { return arch_.name; }
  llvm::StringRef device() const override { return "cuda"; }
  std::vector<std::string> stages() const override { return {"sweeps", "gpu", "llvm", "ptx", "sass"}; }

  std::vector<Candidate> defaults(const Problem& problem) const override {
    std::vector<Candidate> list;
    for (Strategy strategy : legalStrategies(problem)) {
      KernelTraits traits = traitsOf(problem, strategy);
      Schedule schedule = cuda::defaultSchedule(traits, arch_, strategy);
      if (!list.empty() && traits.backward) leaveRoom(schedule, arch_);
      if (cuda::whyIllegal(traits, schedule, arch_)) continue;
      // Whole columns by one block leave most of a device idle: for few rows alone, and where that saves two
      // launches. The update of nu, for a vector of features, asks for more registers than there are.
      if (list.empty())
        list.push_back({schedule.text()});
      else if (traits.sweepsColumnsTwice && !traits.updatesState)
        list.push_back({schedule.text(), {.rowsMax = rowsOfResident(traits, schedule)}});
    }
    return list;
  }
  std::optional<std::string> whyNot(const Problem& problem) const override {
    std::optional<std::string> reason;
    for (Strategy strategy : legalStrategies(problem)) {
      KernelTraits traits = traitsOf(problem, strategy);
      reason = cuda::whyIllegal(traits, cuda::defaultSchedule(traits, arch_, strategy), arch_);
      if (!reason) return std::nullopt;
    }
    return reason;
  }
  /// Clusters of more than eight blocks, blocks of the grid that wait for each other, and more shared memory
  /// than a block has on the smaller devices, are not on every device; nor does every driver read the PTX of
  /// bulk copies.
  std::optional<std::string> fallback(const Problem& problem, llvm::StringRef text) const override {
    constexpr int64_t kPortableCluster = 8;
    const Schedule schedule = llvm::cantFail(parseSchedule(text));
    const KernelTraits whole = traitsOf(problem, schedule.strategy);
    Arch least = arch_;  // one block alone on the smallest multiprocessor
    least.sharedBytes = std::min(arch_.sharedBytes, kLeastShared);
    Schedule alone = schedule;
    alone.blocks = std::min<int64_t>(alone.blocks, 1);
    const bool large = schedule.cluster > kPortableCluster || schedule.grid > 1 ||
                       (dynamicBytes(whole, schedule) > 0 && cuda::whyIllegal(whole, alone, least));
    if (!large && !schedule.prefetch.inBulk()) return std::nullopt;
    Arch lesser = arch_;
    if (large) lesser.number = 80;  // the last without clusters
    for (Strategy strategy : legalStrategies(problem)) {
      const KernelTraits traits = traitsOf(problem, strategy);
      const Schedule plain = cuda::defaultSchedule(traits, lesser, strategy);
      if (!cuda::whyIllegal(traits, plain, arch_)) return plain.text();
    }
    return std::nullopt;
  }
  llvm::Expected<std::string> canonical(llvm::StringRef text) const override {
    auto schedule = parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return schedule->text();
  }
  std::optional<std::string> whyIllegal(const Problem& problem, llvm::StringRef text) const override {
    auto schedule = parseSchedule(text);
    if (!schedule) return llvm::toString(schedule.takeError());
    if (auto reason = whyNotEverywhere(problem, schedule->strategy)) return reason;
    return cuda::whyIllegal(traitsOf(problem, schedule->strategy), *schedule, arch_);
  }
  std::vector<KnobSpace> knobs(const Problem& problem, const Load&) const override {
    std::vector<KnobSpace> spaces;
    for (Strategy strategy : legalStrategies(problem))
      spaces.push_back(knobSpace(traitsOf(problem, strategy), arch_, strategy));
    return spaces;
  }
  codegen::Predictor predictor(const Problem& problem, const Load& load) const override {
    return [this, problem, load](llvm::StringRef text) {
      const Schedule schedule = llvm::cantFail(parseSchedule(text));
      return cuda::predict(traitsOf(problem, schedule.strategy), schedule, arch_, load);
    };
  }
  std::string family(const Problem& problem, llvm::StringRef text) const override {
    Schedule schedule = llvm::cantFail(parseSchedule(text));
    return cuda::family(traitsOf(problem, schedule.strategy), schedule);
  }
  llvm::Expected<std::string> emit(const Problem& problem, llvm::StringRef text,
                                   llvm::StringRef name) const override {
    auto stage = findStage(name, stages());
    if (!stage) return stage.takeError();
    auto schedule = parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return cuda::emitStage(problem, *schedule, arch_, *stage);
  }
  llvm::Expected<CompiledKernel> compile(const Problem& problem, llvm::StringRef text,
                                         llvm::StringRef symbol) const override {
    auto schedule = parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return cuda::compileKernel(problem, *schedule, arch_, symbol);
  }

 private:
  /// Planning takes a millisecond, and legality is asked for thousands of schedules of one problem.
  KernelTraits traitsOf(const Problem& problem, Strategy strategy) const {
    std::lock_guard lock(mutex_);
    if (hashed_ != problem.spec) hashed_ = problem.spec, hash_ = problem.spec->structuralHash();
    const auto key = std::pair(hash_ + problem.text(), strategy);
    if (forms_.size() > kForms) forms_.clear();
    const auto [at, isNew] = forms_.try_emplace(key);
    if (isNew) at->second = cuda::traitsOf(problem, strategy);
    return at->second;
  }

  static constexpr size_t kForms = 256;
  Arch arch_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Spec> hashed_;  ///< the spec that was asked for last, and its hash
  mutable std::string hash_;
  mutable std::map<std::pair<std::string, Strategy>, KernelTraits> forms_;
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
