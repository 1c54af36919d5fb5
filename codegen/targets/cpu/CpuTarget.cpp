#include "codegen/targets/cpu/CpuTarget.h"

#include "codegen/targets/cpu/Compile.h"
#include "codegen/targets/cpu/CpuSpace.h"
#include "codegen/targets/cpu/DefaultCandidates.h"
#include "codegen/targets/cpu/Object.h"

namespace normc::codegen::cpu {
namespace {

class CpuTarget : public Target {
 public:
  explicit CpuTarget(Isa isa) : isa_(std::move(isa)) {}
  llvm::StringRef name() const override { return isa_.name; }
  std::string spelling() const override { return cpu::spelling(isa_); }
  llvm::StringRef device() const override { return "cpu"; }
  std::vector<std::string> stages() const override { return {"sweeps", "loops", "llvm", "asm"}; }

  std::vector<Candidate> defaults(const Problem& problem) const override {
    std::vector<Candidate> list;
    for (const DefaultCandidate& candidate : defaultCandidates(problem, isa_))
      list.push_back({candidate.schedule.text(), candidate.limits});
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
  codegen::Predictor predictor(const Problem& problem, const Load& load) const override {
    return [model = cpu::Predictor(problem, isa_, load)](llvm::StringRef text) mutable {
      return model(llvm::cantFail(cpu::parseSchedule(text)));
    };
  }
  llvm::Expected<std::string> emit(const Problem& problem, llvm::StringRef text,
                                   llvm::StringRef name) const override {
    auto stage = findStage(name, stages());
    if (!stage) return stage.takeError();
    auto schedule = cpu::parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return cpu::emitStage(problem, *schedule, isa_, *stage);
  }
  llvm::Expected<CompiledKernel> compile(const Problem& problem, llvm::StringRef text,
                                         llvm::StringRef symbol) const override {
    auto schedule = cpu::parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return cpu::compileKernel(problem, *schedule, isa_, symbol);
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
