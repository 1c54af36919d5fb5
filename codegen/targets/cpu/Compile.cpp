#include "codegen/targets/cpu/Compile.h"

#include "codegen/Compilation.h"
#include "codegen/lower/Expand.h"
#include "codegen/targets/cpu/AttachSchedule.h"
#include "codegen/targets/cpu/BlocksToLlvm.h"
#include "codegen/targets/cpu/Entry.h"
#include "codegen/targets/cpu/Object.h"
#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace normc::codegen::cpu {

// Loops become blocks first: each change inside a loop makes canonicalize look at all of the loop again,
// which took 15 s for a kernel of 22,000 operations.
StringRef loopsToBlocksPipeline() {
  return "convert-scf-to-cf,canonicalize{max-iterations=1 region-simplify=disabled},cse";
}

namespace {

class CpuCompilation : public Compilation {
 public:
  CpuCompilation(const Problem& problem, const Schedule& schedule, const Isa& isa)
      : Compilation(problem, nullptr), schedule_(schedule), isa_(isa) {}

  llvm::Error plan(StringRef symbol) {
    if (auto reason = cpu::whyIllegal(problem_, schedule_, isa_))
      return llvm::createStringError(problem_.text() + " for " + isa_.name.str() + ": " + *reason);
    const int64_t vector = problem_.layout == Layout::FeaturesLast ? schedule_.vector : 0;
    if (auto error = Compilation::plan(schedule_.strategy, symbol, vector)) return error;
    kernel().walk([&](SlabOp s) { sweepsColumns_ |= s.getKind() == SlabKind::Column && s.hasSweeps(); });
    // From sweeps to sweeps; the manifest describes the result.
    return run("planning", attachSchedule(schedule_));
  }

  llvm::Error loops() {
    return run("lowering to loops", normToLoops(), expandDivision(), expandRsqrt(), expandLog(), expandExp(),
               expandAbs(), expandBF16(isa_.roundsBF16, isa_.masks16 ? isa_.vectorBytes / 2 : 0),
               nontemporalWords());
  }

  llvm::Error llvmDialect() {
    return run("lowering to LLVM", loopsToBlocksPipeline(), blocksToLlvm(), addEntryPoints());
  }

  llvm::Expected<std::unique_ptr<llvm::Module>> llvmIr() {
    if (auto error = llvmDialect()) return error;
    return optimizedLlvm(*module_, isa_, llvm_);
  }

  llvm::Expected<std::string> machineCode(llvm::Module& ir, Emit kind) {
    return cpu::machineCode(ir, isa_, kind, sweepsColumns_);
  }

 private:
  const Schedule& schedule_;
  const Isa& isa_;
  bool sweepsColumns_ = false;
};

}  // namespace

llvm::Expected<std::string> emitStage(const Problem& problem, const Schedule& schedule, const Isa& isa,
                                      Stage stage) {
  CpuCompilation c(problem, schedule, isa);
  if (auto error = c.plan("kernel")) return error;
  if (stage == Stage::Sweeps) return c.text();
  if (auto error = c.loops()) return error;
  if (stage == Stage::Loops) {
    if (auto error = c.tidy()) return error;
    return c.text();
  }
  auto ir = c.llvmIr();
  if (!ir) return ir.takeError();
  return stage == Stage::Llvm ? textOf(**ir) : c.machineCode(**ir, Emit::Assembly);
}

llvm::Expected<std::vector<PassText>> passTexts(const Problem& problem, const Schedule& schedule,
                                                const Isa& isa, llvm::ArrayRef<std::string> shown) {
  CpuCompilation c(problem, schedule, isa);
  c.show(shown);
  if (auto error = c.plan("kernel")) return error;
  if (auto error = c.loops()) return error;
  if (auto error = c.llvmDialect()) return error;
  return c.passes();
}

llvm::Expected<CompiledKernel> compileKernel(const Problem& problem, const Schedule& schedule, const Isa& isa,
                                             StringRef symbol) {
  CpuCompilation c(problem, schedule, isa);
  if (auto error = c.plan(symbol)) return error;
  CompiledKernel kernel;
  // The manifest describes the sweeps, which lowering erases.
  kernel.manifest = kernelManifest(problem, schedule, isa, c.kernel());
  if (auto error = c.loops()) return error;
  auto ir = c.llvmIr();
  if (!ir) return ir.takeError();
  auto object = c.machineCode(**ir, Emit::Object);
  if (!object) return object.takeError();
  kernel.object = std::move(*object);
  return kernel;
}

}  // namespace normc::codegen::cpu
