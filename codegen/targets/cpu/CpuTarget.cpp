#include "codegen/targets/cpu/CpuTarget.h"

#include "codegen/targets/TypedTarget.h"
#include "codegen/targets/cpu/Compile.h"
#include "codegen/targets/cpu/CpuSpace.h"
#include "codegen/targets/cpu/DefaultCandidates.h"
#include "codegen/targets/cpu/Link.h"

namespace normc::codegen::cpu {
namespace {

std::vector<std::string> stagesOfCpu() { return {"sweeps", "loops", "llvm", "asm"}; }

class BoundCpu : public TypedTarget<BoundCpu, Schedule, parseSchedule> {
 public:
  BoundCpu(const Problem& problem, const Isa& isa) : problem_(problem), isa_(isa), predictor_(problem, isa) {}

  std::vector<Candidate> defaults() override {
    std::vector<Candidate> list;
    for (const DefaultCandidate& candidate : defaultCandidates(problem_, isa_))
      list.push_back({candidate.schedule.text(), candidate.limits});
    return list;
  }
  std::vector<KnobSpace> knobs(const Workload& workload) override {
    return knobSpaces(problem_, isa_, workload);
  }

  using BoundTarget::whyIllegal;
  std::optional<std::string> whyIllegal() override { return whyNoStrategy(problem_); }
  std::optional<std::string> whyIllegal(const Schedule& s) const {
    return cpu::whyIllegal(problem_, s, isa_);
  }
  double predict(const Schedule& s, const Workload& workload) { return predictor_(s, workload); }
  llvm::Expected<std::string> emit(const Schedule& s, llvm::StringRef name) const {
    auto stage = findStage(name, stagesOfCpu());
    if (!stage) return stage.takeError();
    return emitStage(problem_, s, isa_, *stage);
  }
  llvm::Expected<std::vector<PassText>> passes(const Schedule& s, llvm::ArrayRef<std::string> shown) const {
    return passTexts(problem_, s, isa_, shown);
  }
  llvm::Expected<CompiledKernel> compile(const Schedule& s, llvm::StringRef symbol,
                                         const CubinOptions&) const {
    return compileKernel(problem_, s, isa_, symbol);
  }

 private:
  Problem problem_;
  Isa isa_;
  Predictor predictor_;
};

class CpuTarget : public Target {
 public:
  explicit CpuTarget(Isa isa) : isa_(std::move(isa)) {}
  llvm::StringRef name() const override { return isa_.name; }
  std::string spelling() const override { return cpu::spelling(isa_); }
  llvm::StringRef core() const override { return isa_.core ? isa_.core->name : ""; }
  llvm::StringRef device() const override { return "cpu"; }
  std::vector<std::string> stages() const override { return stagesOfCpu(); }
  using Target::bind;
  std::shared_ptr<BoundTarget> bind(const Problem& problem) const override {
    return std::make_shared<BoundCpu>(problem, isa_);
  }
  llvm::Expected<std::string> link(llvm::ArrayRef<std::string> objects) const override {
    return linkShared(objects, isa_);
  }

 private:
  Isa isa_;
};

}  // namespace

llvm::Expected<TargetPtr> findTarget(llvm::StringRef name) {
  auto isa = findIsa(name);
  if (!isa) return isa.takeError();
  return std::make_shared<CpuTarget>(std::move(*isa));
}

std::vector<std::string> targetNames() {
  std::vector<std::string> names{"host"};
  for (const Isa& isa : instructionSets()) names.push_back(isa.name.str());
  return names;
}

}  // namespace normc::codegen::cpu
