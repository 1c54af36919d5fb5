#include "codegen/targets/cuda/Ptx.h"

#include "codegen/targets/Machine.h"
#include "codegen/targets/cuda/CacheHints.h"
#include "codegen/targets/cuda/WidenAgain.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

namespace normc::codegen::cuda {

static constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";

/// The PTX versions that kernels need for sm_90, which decide the drivers that read them: asynchronous stores
/// need 8.1, bulk copies and the fence of an mbarrier 8.0.
enum class Version { Oldest = 78, Copies = 80, Stores = 81 };

/// Returns the PTX version. 8.8 has accesses of 32 bytes. 9.0 is the first that knows the architectures that
/// came with CUDA 13; LLVM ends the process over an older one.
static std::string versionFor(int64_t number, Version least) {
  if (number == 88 || number == 110) return "+ptx90";
  return "+ptx" + std::to_string(number > 90 ? 88 : int(least));
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machineOf(llvm::StringRef arch,
                                                                      Version least = Version::Oldest) {
  int64_t number = 0;
  (void)arch.drop_front(3).getAsInteger(10, number);
  // At the level above, NVPTX numbers all values once more, which takes a tenth of the time and finds nothing
  // after kPasses.
  return machineFor({kTriple.str(), arch.str(), versionFor(number, least), llvm::CodeGenOptLevel::Default});
}

/// The passes of O3 that matter for these kernels, which have neither calls nor local memory, in half the
/// time. Ranges (sccp, correlated-propagation) remove most tests for the end of a row, and reassociate orders
/// sums of indices so that addresses are shared: without either, entries for any alignment have up to a third
/// more instructions. Without jump-threading, constraint-elimination and their neighbours rows with few
/// registers to spare spill.
static constexpr llvm::StringLiteral kPasses =
    "function("
    "sccp,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,simplifycfg,early-cse<memssa>,"
    "speculative-execution<only-if-divergent-target>,jump-threading,correlated-propagation,"
    "simplifycfg,instcombine<no-verify-fixpoint>,reassociate,constraint-elimination,loop-mssa(loop-rotate,"
    "licm),"
    "simplifycfg,instcombine<no-verify-fixpoint>,loop(indvars,loop-deletion,loop-unroll-full),mldst-motion,"
    "gvn,bdce,"
    "instcombine<no-verify-fixpoint>,dse,loop-mssa(licm),"
    "simplifycfg<bonus-inst-threshold=1;switch-range-to-icmp;hoist-common-insts;sink-common-insts>,"
    "loop-unroll<O3>,instcombine<no-verify-fixpoint>,infer-alignment,div-rem-pairs,simplifycfg)";

static constexpr llvm::StringLiteral kStoreAsync =
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.";

static Version leastVersion(const llvm::Module& ir) {
  Version least = Version::Oldest;
  for (const llvm::Function& f : ir) {
    const llvm::StringRef name = f.getName();
    if (name.starts_with("llvm.nvvm.cp.async.bulk.") || name.starts_with("llvm.nvvm.fence.mbarrier_init"))
      least = Version::Copies;
    for (const llvm::Instruction& i : llvm::instructions(f)) {
      auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
      auto* code = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
      if (code && llvm::StringRef(code->getAsmString()).starts_with(kStoreAsync)) return Version::Stores;
    }
  }
  return least;
}

bool llvmKnows(llvm::StringRef arch) {
  auto machine = machineOf("sm_80");
  if (!machine) {
    llvm::consumeError(machine.takeError());
    return false;
  }
  return (*machine)->getMCSubtargetInfo()->isCPUStringValid(arch);
}

void registerDialects(mlir::DialectRegistry& registry) {
  registry.insert<mlir::gpu::GPUDialect, mlir::NVVM::NVVMDialect>();
  // convert-gpu-to-nvvm asks each dialect how it becomes LLVM.
  mlir::arith::registerConvertArithToLLVMInterface(registry);
  mlir::cf::registerConvertControlFlowToLLVMInterface(registry);
  mlir::registerConvertMathToLLVMInterface(registry);
  mlir::registerConvertMemRefToLLVMInterface(registry);
  mlir::registerConvertNVVMToLLVMInterface(registry);
  mlir::vector::registerConvertVectorToLLVMInterface(registry);
  mlir::registerGPUDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
}

void syncWarp(mlir::OpBuilder& b, mlir::Location loc) {
  mlir::Value all = mlir::LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(-1));
  mlir::NVVM::SyncWarpOp::create(b, loc, all);
}

void waitForLaunchBefore(mlir::OpBuilder& b, mlir::Location loc) {
  mlir::NVVM::GriddepcontrolOp::create(b, loc, mlir::NVVM::GridDepActionKind::wait);
}

void letNextLaunchBegin(mlir::OpBuilder& b, mlir::Location loc) {
  mlir::NVVM::GriddepcontrolOp::create(b, loc, mlir::NVVM::GridDepActionKind::launch_dependents);
}

void arriveAtCluster(mlir::OpBuilder& b, mlir::Location loc) {
  mlir::NVVM::ClusterArriveOp::create(b, loc, b.getUnitAttr());
}

void waitForCluster(mlir::OpBuilder& b, mlir::Location loc) {
  mlir::NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
}

mlir::Value inSharedMemoryOf(mlir::OpBuilder& b, mlir::Location loc, mlir::Value pointer, mlir::Value block) {
  auto type =
      mlir::LLVM::LLVMPointerType::get(b.getContext(), unsigned(mlir::NVVM::NVVMMemorySpace::SharedCluster));
  return mlir::NVVM::MapaOp::create(b, loc, type, pointer, block);
}

void copyToShared(mlir::OpBuilder& b, mlir::Location loc, mlir::Value to, mlir::Value from, int64_t bytes) {
  using Cache = mlir::NVVM::LoadCacheModifierKind;
  mlir::NVVM::CpAsyncOp::create(b, loc, to, from, uint32_t(bytes), bytes == 16 ? Cache::CG : Cache::CA,
                                mlir::Value());
}

void endCopies(mlir::OpBuilder& b, mlir::Location loc) { mlir::NVVM::CpAsyncCommitGroupOp::create(b, loc); }

void waitForCopies(mlir::OpBuilder& b, mlir::Location loc, int64_t left) {
  mlir::NVVM::CpAsyncWaitGroupOp::create(b, loc, uint32_t(left));
}

void initMbarrier(mlir::OpBuilder& b, mlir::Location loc, mlir::Value mbarrier) {
  mlir::Value one = mlir::LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(1));
  mlir::NVVM::MBarrierInitOp::create(b, loc, mbarrier, one, mlir::Value());
  mlir::NVVM::FenceMbarrierInitOp::create(b, loc);
}

void expectBytes(mlir::OpBuilder& b, mlir::Location loc, mlir::Value mbarrier, mlir::Value bytes) {
  mlir::LLVM::CallIntrinsicOp::create(
      b, loc, b.getI64Type(), b.getStringAttr("llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta"),
      mlir::ValueRange{mbarrier, bytes});
}

void waitForMbarrier(mlir::OpBuilder& b, mlir::Location loc, mlir::Value mbarrier, mlir::Value parity) {
  mlir::Value ticks = mlir::LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(10'000'000));
  mlir::NVVM::MBarrierTryWaitParityOp::create(b, loc, mbarrier, parity, ticks);
}

void storeAsync(mlir::OpBuilder& b, mlir::Location loc, mlir::ValueRange floats, mlir::Value to,
                mlir::Value mbarrier) {
  const bool f64 = floats[0].getType().isF64();
  llvm::SmallVector<mlir::Value> operands{to};
  std::string list, constraints = "l";
  for (mlir::Value v : floats) {
    list += (list.empty() ? "$" : ", $") + std::to_string(operands.size());
    constraints += f64 ? ",d" : ",f";
    operands.push_back(v);
  }
  if (floats.size() > 1)
    list = "v" + std::to_string(floats.size()) + (f64 ? ".f64" : ".f32") + " [$0], {" + list + "}";
  else
    list = (f64 ? "f64 [$0], " : "f32 [$0], ") + list;
  const std::string code = kStoreAsync.str() + list + ", [$" + std::to_string(operands.size()) + "];";
  operands.push_back(mbarrier);
  mlir::LLVM::InlineAsmOp::create(b, loc, mlir::TypeRange(), operands, code, constraints + ",l,~{memory}",
                                  /*has_side_effects=*/true, /*is_align_stack=*/false,
                                  mlir::LLVM::tailcallkind::TailCallKind::None, {}, {});
}

void copyInBulk(mlir::OpBuilder& b, mlir::Location loc, mlir::Value to, mlir::Value from,
                mlir::Value mbarrier, mlir::Value bytes) {
  auto cluster =
      mlir::LLVM::LLVMPointerType::get(b.getContext(), unsigned(mlir::NVVM::NVVMMemorySpace::SharedCluster));
  mlir::Value there = mlir::LLVM::AddrSpaceCastOp::create(b, loc, cluster, to);
  mlir::NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(b, loc, there, from, mbarrier, bytes, mlir::Value(),
                                                         mlir::Value());
}

llvm::StringRef minBlocksAttrName() { return mlir::NVVM::NVVMDialect::getMinctasmAttrName(); }

llvm::StringRef gpuToLlvmPipeline() {
  return "canonicalize{max-iterations=1 region-simplify=disabled},cse,"  // more finds nothing
         "gpu.module("
         "convert-scf-to-cf,"
         "expand-strided-metadata,"
         "lower-affine,"
         "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=1 index-bitwidth=0 has-redux=1 "
         "allow-pattern-rollback=0},"
         "convert-nvvm-to-llvm,"
         "convert-vector-to-llvm{reassociate-fp-reductions=1},"
         "reconcile-unrealized-casts)";
}

llvm::Expected<std::unique_ptr<llvm::Module>> optimizedLlvm(mlir::Operation* gpuModule, const Arch& arch,
                                                            llvm::LLVMContext& context) {
  std::unique_ptr<llvm::Module> ir = mlir::translateModuleToLLVMIR(gpuModule, context, "normc");
  if (!ir) return llvm::createStringError("translation to LLVM IR failed; this is a fault of normc");
  auto machine = machineOf(arch.name, leastVersion(*ir));
  if (!machine) return machine.takeError();
  layOut(*ir, **machine);
  for (llvm::Function& f : *ir)
    if (!f.isDeclaration()) f.addFnAttr("target-cpu", arch.name);
  optimize(*ir, **machine, kPasses);
  if (arch.clusters()) widenAgain(*ir);  // before sm_90 a widening is several instructions
  hintCaches(*ir);
  return ir;
}

/// Returns the text with `.rn` on every sum, difference and product of floats. NVPTX has made the fused ones;
/// of the others without it ptxas may fuse more, another version other ones, and the bits would differ.
static std::string roundedAsWritten(llvm::StringRef text) {
  std::string result;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    llvm::StringRef name = line.ltrim();
    if (name.starts_with("@")) name = name.drop_until(llvm::isSpace).ltrim();
    name = name.take_until(llvm::isSpace);
    const bool sums = name.starts_with("add.") || name.starts_with("sub.") || name.starts_with("mul.");
    const bool floats = name.contains(".f") || name.contains(".bf");
    const bool says = llvm::any_of(llvm::ArrayRef{".rn", ".rz", ".rm", ".rp"},
                                   [&](const char* rounding) { return name.contains(rounding); });
    const size_t behind = sums && floats && !says ? size_t(name.data() - line.data()) + 3 : 0;
    result += line.take_front(behind);
    if (behind) result += ".rn";
    result += line.drop_front(behind);
    result += '\n';
    text = rest;
  }
  return result;
}

llvm::Expected<std::string> ptx(llvm::Module& ir, const Arch& arch) {
  auto machine = machineOf(arch.name, leastVersion(ir));
  if (!machine) return machine.takeError();
  auto text = emit(ir, **machine, llvm::CodeGenFileType::AssemblyFile);
  if (!text) return text.takeError();
  return roundedAsWritten(*text);
}

}  // namespace normc::codegen::cuda
