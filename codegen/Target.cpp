#include "codegen/Target.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "codegen/targets/cpu/Cove.h"
#include "codegen/targets/cpu/Object.h"
#include "codegen/targets/cpu/Space.h"
#include "codegen/targets/cuda/Space.h"
#include "codegen/targets/halide/HalideTarget.h"

namespace normc::codegen {

llvm::Expected<std::string> Target::link(llvm::ArrayRef<std::string>) const {
  return llvm::createStringError("kernels for " + name().str() + " are not linked");
}

namespace {

/// X bytes up to which the resident form of a column norm was measured to be faster on a CPU: a backward has three tensors.
constexpr int64_t kResidentBytes = 4 << 20, kResidentBytesBackward = 1 << 20;
/// The same where strips of rows shorter than a page end within lines, unless the other form reads x twice and rows begin at
/// many places in a page; and, of one reading, where they begin at two and sixteen registers cannot hold a wide strip.
constexpr int64_t kUnalignedResidentBytes = 64 << 10;
/// The same of channels: beyond it their runs, which lie far from each other, are read in the order of memory, and twice.
constexpr int64_t kResidentRunsBytes = 8 << 20, kResidentRunsBytesBackward = 2 << 20;
/// But not where x would be read twice and the run of a segment has so many bytes (narrow: of 16 bits), beside which going to
/// the next is little; or, backward, half a page where the channel stays in the second-level cache.
constexpr int64_t kLongRunBytes = 8 << 10, kLongRunBytesNarrow = 32 << 10, kRunBytesBackward = 2 << 10, kChannelBytesBackward = 128 << 10;
/// Rows up to which the sums of such a column, two levels of them, keep their digits.
constexpr int64_t kResidentRows = 1 << 14;
/// Rows up to which it pays where they are a multiple of a page apart: what it saves are phases, and a second reading
/// where statistics of the batch come first.
constexpr int64_t kCollidingRows = 2, kCollidingRowsReadTwice = 16, kCollidingRowsBackward = 6;
constexpr int64_t kPageBytes = 4096;
/// Rows up to which it pays where nothing is summed: what it saves is one phase.
constexpr int64_t kMapRows = 4;
/// Features and rows of a backward for which it pays to go down the columns, whatever the number of threads: there is no
/// sum per feature to clear, to add to and to add up. Of more rows from twice as many features on, and of
/// all while x has so many elements where a second-level cache of 2 MiB keeps the three tensors.
constexpr int64_t kSplitFeatures = 1024, kSplitRows = 4, kSplitRowsOfMany = 16, kSplitElements = 128 << 10;
/// On such a core sums about a mean, of which there are more, pay from here on.
constexpr int64_t kManyFeaturesCentered = 1536;
/// The same where there are no such sums, as in a forward: all that is won is that several threads have a row.
constexpr int64_t kLongRow = 32768;

int64_t residentBytes(const Problem& problem, const cpu::Isa& isa) {
  const bool backward = problem.entry == Entry::Backward, batch = problem.spec->needsBatchStatistics();
  const bool twice = batch && !backward, crowded = cpu::placesOfRows(problem) <= 2;
  if (cpu::splitsLines(problem) && (crowded || !twice)) return kUnalignedResidentBytes;
  if (isa.registers < 32 && crowded && !batch) return kUnalignedResidentBytes;
  return backward ? kResidentBytesBackward : kResidentBytes;
}

/// Rows up to which tasks share each of them; none where that does not pay.
std::optional<int64_t> splitRows(const Problem& problem, const cpu::Isa& isa) {
  const bool sums = problem.entry == Entry::Backward && (problem.spec->scale || problem.spec->bias);
  const int64_t features = problem.features.value_or(0), least = !sums ? kLongRow : isa.registers < 32 ? 2 * kSplitFeatures : kSplitFeatures;
  if (features < least) return std::nullopt;
  const bool cove = isa.core == cpu::Core::Cove && isa.registers >= 32, centered = problem.spec->center != Center::None;
  const int64_t many = cove && centered ? kManyFeaturesCentered : 2 * least;
  if (!sums || features < many) return kSplitRows;
  return cove ? std::max(kSplitElements / features, kSplitRowsOfMany) : kSplitRowsOfMany;
}

class CpuTarget : public Target {
 public:
  explicit CpuTarget(cpu::Isa isa) : isa_(std::move(isa)) {}
  llvm::StringRef name() const override { return isa_.name; }
  std::string spelling() const override { return cpu::spelling(isa_); }
  llvm::StringRef device() const override { return "cpu"; }
  std::vector<std::string> stages() const override { return {"sweeps", "loops", "llvm", "asm"}; }

  std::vector<Candidate> defaults(const Problem& problem) const override {
    std::vector<Candidate> list;
    for (Strategy strategy : cpu::strategies(problem))
      list.push_back({cpu::defaultSchedule(problem, isa_, strategy).text()});
    if (list.size() < 2) return list;
    if (!problem.spec->perFeature()) {
      list[1].limits.rowsMax = splitRows(problem, isa_);
      if (!list[1].limits.rowsMax) list.pop_back();
      return list;
    }
    const bool map = problem.entry == Entry::Infer && problem.spec->running.has_value();
    if (problem.layout == Layout::ChannelsFirst) {
      std::swap(list[0], list[1]);
      const bool backward = problem.entry == Entry::Backward;
      const int64_t most = map ? kUnalignedResidentBytes : backward ? kResidentRunsBytesBackward : kResidentRunsBytes;
      list[1].limits.rowsMax = std::max<int64_t>(most / (problem.features.value_or(1024) * bytes(problem.data)), 1);
      if (map || !problem.spec->needsBatchStatistics()) return list;
      const std::string whole = list[1].schedule;
      const int64_t size = bytes(problem.data);
      if (backward && size > 2) list.push_back({whole, {.rowsMax = kChannelBytesBackward / size, .runMin = kRunBytesBackward / size}});
      list.push_back({whole, {.runMin = (size > 2 ? kLongRunBytes : kLongRunBytesNarrow) / size}});
      return list;
    }
    // Whole columns at a time read memory in narrow strips: worth it while the tensor stays in cache.
    // Where rows begin at one place in a page, a column's share one set of the first-level cache.
    int64_t row = problem.features.value_or(1024) * bytes(problem.data);
    const int64_t twice = problem.entry == Entry::Backward ? kCollidingRowsBackward : kCollidingRowsReadTwice;
    const int64_t colliding = problem.spec->needsBatchStatistics() ? twice : kCollidingRows;
    const int64_t most = map ? kMapRows : cpu::placesOfRows(problem) == 1 ? (row % kPageBytes ? kCollidingRows : colliding) : kResidentRows;
    list[1].limits.rowsMax = std::clamp<int64_t>(residentBytes(problem, isa_) / row, 1, most);
    if (isa_.core != cpu::Core::Cove || map) return list;
    if (auto bytes = cpu::residentBytesOfCove(problem, isa_)) list[1].limits.rowsMax = std::clamp<int64_t>(*bytes / row, 1, kResidentRows);
    return list;
  }
  llvm::Expected<std::string> canonical(llvm::StringRef text) const override {
    auto schedule = cpu::parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return schedule->text();
  }
  std::optional<std::string> whyIllegal(const Problem& problem, llvm::StringRef text) const override {
    auto schedule = cpu::parseSchedule(text);
    return schedule ? cpu::whyIllegal(problem, *schedule, isa_) : llvm::toString(schedule.takeError());
  }
  std::vector<KnobSpace> knobs(const Problem& problem, const Load& load) const override {
    return cpu::knobSpaces(problem, isa_, load);
  }
  double predict(const Problem& problem, llvm::StringRef text, const Load& load) const override {
    return cpu::predict(problem, llvm::cantFail(cpu::parseSchedule(text)), isa_, load);
  }
  llvm::Expected<std::string> emit(const Problem& problem, llvm::StringRef text, llvm::StringRef name) const override {
    auto stage = findStage(name, stages());
    if (!stage) return stage.takeError();
    auto schedule = cpu::parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return emitStage(problem, *schedule, isa_, *stage);
  }
  llvm::Expected<CompiledKernel> compile(const Problem& problem, llvm::StringRef text, llvm::StringRef symbol) const override {
    auto schedule = cpu::parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return compileKernel(problem, *schedule, isa_, symbol);
  }
  llvm::Expected<std::string> link(llvm::ArrayRef<std::string> objects) const override {
    return cpu::linkShared(objects, isa_);
  }

 private:
  cpu::Isa isa_;
};

/// Whole columns, backward: what a vector of features has beside its sums (second moment, scale, centre) fills
/// registers, so vectors are short and half as much is held; before sm_90, where ptxas finds less room, of half as many
/// rows at once.
void leaveRoom(cuda::Schedule& s, const cuda::Arch& arch) {
  constexpr int64_t kVector = 4;
  const int64_t held = arch.clusters() ? 32 : 24;
  if (s.vector > kVector) s.team *= s.vector / kVector, s.vector = kVector;
  if (!arch.clusters()) s.rows = std::min<int64_t>(s.rows, 2);
  if (s.hold) s.hold = std::max<int64_t>(1, held / (s.rows * s.vector));
}

class CudaTarget : public Target {
 public:
  explicit CudaTarget(cuda::Arch arch) : arch_(std::move(arch)) {}
  llvm::StringRef name() const override { return arch_.name; }
  llvm::StringRef device() const override { return "cuda"; }
  std::vector<std::string> stages() const override { return {"sweeps", "gpu", "llvm", "ptx", "sass"}; }

  std::vector<Candidate> defaults(const Problem& problem) const override {
    std::vector<Candidate> list;
    for (Strategy strategy : legalStrategies(problem)) {
      cuda::Form form = formOf(problem, strategy);
      cuda::Schedule schedule = cuda::defaultSchedule(form, arch_, strategy);
      if (!list.empty() && form.backward) leaveRoom(schedule, arch_);
      if (cuda::whyIllegal(form, schedule, arch_)) continue;
      // Whole columns by one block leave most of a device idle: for few rows alone, and where that saves two launches.
      // The update of nu, for a vector of features, asks for more registers than there are.
      if (list.empty()) list.push_back({schedule.text()});
      else if (form.returns && !form.updates) list.push_back({schedule.text(), {.rowsMax = cuda::rowsOfResident(form, schedule)}});
    }
    return list;
  }
  std::optional<std::string> whyNot(const Problem& problem) const override {
    std::optional<std::string> reason;
    for (Strategy strategy : legalStrategies(problem)) {
      cuda::Form form = formOf(problem, strategy);
      reason = cuda::whyIllegal(form, cuda::defaultSchedule(form, arch_, strategy), arch_);
      if (!reason) return std::nullopt;
    }
    return reason;
  }
  /// Clusters of more than eight blocks, and blocks of the grid that wait for each other, are not on every device; nor
  /// does every driver read the PTX of bulk copies.
  std::optional<std::string> fallback(const Problem& problem, llvm::StringRef text) const override {
    constexpr int64_t kPortableCluster = 8;
    const cuda::Schedule schedule = llvm::cantFail(cuda::parseSchedule(text));
    const bool waits = schedule.cluster > kPortableCluster || schedule.grid > 1;
    if (!waits && !cuda::copiesInBulk(schedule)) return std::nullopt;
    cuda::Arch lesser = arch_;
    if (waits) lesser.number = 80;  // the last without clusters
    for (Strategy strategy : legalStrategies(problem)) {
      const cuda::Form form = formOf(problem, strategy);
      const cuda::Schedule plain = cuda::defaultSchedule(form, lesser, strategy);
      if (!cuda::whyIllegal(form, plain, arch_)) return plain.text();
    }
    return std::nullopt;
  }
  llvm::Expected<std::string> canonical(llvm::StringRef text) const override {
    auto schedule = cuda::parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return schedule->text();
  }
  std::optional<std::string> whyIllegal(const Problem& problem, llvm::StringRef text) const override {
    auto schedule = cuda::parseSchedule(text);
    if (!schedule) return llvm::toString(schedule.takeError());
    if (auto reason = whyNotEverywhere(problem, schedule->strategy)) return reason;
    return cuda::whyIllegal(formOf(problem, schedule->strategy), *schedule, arch_);
  }
  std::vector<KnobSpace> knobs(const Problem& problem, const Load&) const override {
    std::vector<KnobSpace> spaces;
    for (Strategy strategy : legalStrategies(problem))
      spaces.push_back(cuda::knobSpace(formOf(problem, strategy), arch_, strategy));
    return spaces;
  }
  double predict(const Problem& problem, llvm::StringRef text, const Load& load) const override {
    cuda::Schedule schedule = llvm::cantFail(cuda::parseSchedule(text));
    return cuda::predict(formOf(problem, schedule.strategy), schedule, arch_, load);
  }
  std::string family(const Problem& problem, llvm::StringRef text) const override {
    cuda::Schedule schedule = llvm::cantFail(cuda::parseSchedule(text));
    return cuda::family(formOf(problem, schedule.strategy), schedule);
  }
  llvm::Expected<std::string> emit(const Problem& problem, llvm::StringRef text, llvm::StringRef name) const override {
    auto stage = findStage(name, stages());
    if (!stage) return stage.takeError();
    auto schedule = cuda::parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return emitStage(problem, *schedule, arch_, *stage);
  }
  llvm::Expected<CompiledKernel> compile(const Problem& problem, llvm::StringRef text, llvm::StringRef symbol) const override {
    auto schedule = cuda::parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return compileKernel(problem, *schedule, arch_, symbol);
  }

 private:
  /// Planning takes a millisecond, and legality is asked for thousands of schedules of one problem.
  cuda::Form formOf(const Problem& problem, Strategy strategy) const {
    std::lock_guard lock(mutex_);
    if (hashed_ != problem.spec) hashed_ = problem.spec, hash_ = problem.spec->structuralHash();
    const auto key = std::pair(hash_ + problem.text(), strategy);
    if (forms_.size() > kForms) forms_.clear();
    const auto [at, isNew] = forms_.try_emplace(key);
    if (isNew) at->second = cuda::formOf(problem, strategy);
    return at->second;
  }

  static constexpr size_t kForms = 256;
  cuda::Arch arch_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Spec> hashed_;  ///< the spec that was asked for last, and its hash
  mutable std::string hash_;
  mutable std::map<std::pair<std::string, Strategy>, cuda::Form> forms_;
};

}  // namespace

llvm::Expected<TargetPtr> findTarget(llvm::StringRef name) {
  if (cuda::isArchName(name)) {
    auto arch = cuda::findArch(name);
    if (!arch) return arch.takeError();
    return std::make_shared<CudaTarget>(std::move(*arch));
  }
  auto isa = cpu::findIsa(name);
  if (!isa) return isa.takeError();
  return std::make_shared<CpuTarget>(std::move(*isa));
}

llvm::Expected<std::vector<TargetPtr>> findGenerators(llvm::StringRef name) {
  auto target = findTarget(name);
  if (!target) return target.takeError();
  std::vector<TargetPtr> all{std::move(*target)};
  if (all[0]->device() != "cpu") return all;
  auto second = halide::findTarget(name);
  if (second) all.push_back(std::move(*second));
  else llvm::consumeError(second.takeError());  // one is enough; `normc doctor` says what the other lacks
  return all;
}

std::vector<std::string> targetNames() {
  std::vector<std::string> names{"host"};
  for (const cpu::Isa& isa : cpu::instructionSets()) names.push_back(isa.name.str());
  for (llvm::StringRef arch : cuda::defaultArchs()) names.push_back(arch.str());
  return names;
}

}  // namespace normc::codegen
