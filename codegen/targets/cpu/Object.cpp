#include "codegen/targets/cpu/Object.h"

#include "codegen/targets/Machine.h"
#include "llvm/IR/Module.h"
#include "mlir/Target/LLVMIR/Export.h"

namespace normc::codegen::cpu {

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machineOf(const Isa& isa) {
  return machineFor({isa.triple, isa.cpu.str(), isa.features.str()});
}

/// The passes of O3 that change these kernels, in less than half of its time; code is as large and as fast.
/// Phases are functions that entry points call: what is simplified before it is inlined is not simplified in
/// each of them. Loops are vectors already and as long as the schedule wants them, so nothing vectorizes or
/// unrolls them, and no pass needs the trip counts that indvars computes. sink moves what a loop does not use
/// behind it, of rows ahead the sums. At the end a constant part of an index moves to the address.
static constexpr llvm::StringLiteral kPasses =
    "function(simplifycfg,early-cse),"
    "cgscc(inline),deadargelim,"
    "function("
    "early-cse<memssa>,jump-threading,correlated-propagation,simplifycfg,"
    "instcombine<no-verify-fixpoint>,simplifycfg,reassociate,"
    "loop-mssa(loop-simplifycfg,licm<no-allowspeculation>,loop-rotate<header-duplication>,"
    "licm<allowspeculation>,simple-loop-unswitch<nontrivial;trivial>),"
    "simplifycfg,sink,vector-combine,early-cse<memssa>,instcombine<no-verify-fixpoint>,"
    "jump-threading,correlated-propagation,loop-mssa(licm<allowspeculation>),"
    "simplifycfg<switch-range-to-icmp;hoist-common-insts;sink-common-insts>,"
    "infer-alignment,loop-mssa(licm<allowspeculation>),"
    "simplifycfg<switch-range-to-icmp;hoist-common-insts;sink-common-insts>,"
    "separate-const-offset-from-gep,early-cse)";

llvm::Expected<std::unique_ptr<llvm::Module>> optimizedLlvm(mlir::ModuleOp module, const Isa& isa,
                                                            llvm::LLVMContext& context) {
  auto machine = machineOf(isa);
  if (!machine) return machine.takeError();
  std::unique_ptr<llvm::Module> ir = mlir::translateModuleToLLVMIR(module, context, "normc");
  if (!ir) return llvm::createStringError("translation to LLVM IR failed; this is a fault of normc");
  layOut(*ir, **machine);
  for (llvm::Function& f : *ir) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", isa.cpu);
    // LLVM prefers 256 bits on many processors with AVX-512; the schedule has chosen the width.
    f.addFnAttr("prefer-vector-width", std::to_string(8 * isa.vectorBytes));
    f.addFnAttr(llvm::Attribute::NoUnwind);
  }
  optimize(*ir, **machine, kPasses);
  return ir;
}

llvm::Expected<std::string> machineCode(llvm::Module& ir, const Isa& isa, Emit kind, bool reducesStrength) {
  auto machine = machineOf(isa);
  if (!machine) return machine.takeError();
  const bool without = !reducesStrength && llvm::Triple(isa.triple).isX86();
  return emit(ir, **machine,
              kind == Emit::Object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile,
              without ? "Loop Strength Reduction" : "");
}

}  // namespace normc::codegen::cpu
