// Every activation and its derivative in GPU code: no call of a device library, and as accurate as on a CPU.
#include "codegen/Compilation.h"
#include "codegen/emulator/Emulator.h"
#include "codegen/lower/Expand.h"
#include "codegen/targets/cuda/Approximations.h"
#include "codegen/targets/cuda/Intrinsics.h"
#include "codegen/targets/cuda/Ptx.h"
#include "dsl/Library.h"
#include "llvm/IR/Module.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "tests/codegen/ActivationValues.h"
#include "tests/cuda/Emulated.h"

namespace normc::codegen {
namespace {

using namespace mlir;

constexpr int64_t kThreads = 128;

/// A kernel of `count` threads that writes function i of x[thread] to y[i * count + thread].
class Functions : public Compilation {
 public:
  Functions(const Problem& problem, int64_t count) : Compilation(problem, cuda::registerDialects) {
    KernelBuilder k(*module_, problem, "unused");
    OpBuilder& b = k.ops();
    b.setInsertionPointToEnd(module_->getBody());
    auto gpuModule = gpu::GPUModuleOp::create(b, k.loc(), "functions");
    b.setInsertionPointToStart(gpuModule.getBody());
    const auto& functions = activationFunctions();
    Type pointers[] = {MemRefType::get({count}, k.statisticsType()),
                       MemRefType::get({count * int64_t(functions.size())}, k.statisticsType())};
    auto function = gpu::GPUFuncOp::create(b, k.loc(), "k", b.getFunctionType(pointers, {}));
    function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
    b.setInsertionPointToStart(&function.getBody().front());
    auto constant = [&](int64_t n) -> Value { return arith::ConstantIndexOp::create(b, k.loc(), n); };
    Value block = gpu::BlockIdOp::create(b, k.loc(), gpu::Dimension::x);
    Value thread =
        arith::AddIOp::create(b, k.loc(), arith::MulIOp::create(b, k.loc(), block, constant(kThreads)),
                              gpu::ThreadIdOp::create(b, k.loc(), gpu::Dimension::x));
    Num t{&k, memref::LoadOp::create(b, k.loc(), function.getArgument(0), thread)};
    for (const auto& [i, f] : llvm::enumerate(functions))
      memref::StoreOp::create(b, k.loc(), f.emit(k, t).value, function.getArgument(1),
                              Value(arith::AddIOp::create(b, k.loc(), thread, constant(int64_t(i) * count))));
    gpu::ReturnOp::create(b, k.loc());
    k.kernel().erase();
  }
  std::unique_ptr<llvm::Module> llvmIr(const cuda::Arch& arch) {
    llvm::cantFail(run("lowering", expandRsqrt(), expandLog(), cuda::approximateFunctions(), expandExp(),
                       expandAbs(), cuda::mathToIntrinsics(), cuda::gpuToLlvmPipeline()));
    return llvm::cantFail(cuda::optimizedLlvm(*module_->getOps<gpu::GPUModuleOp>().begin(), arch, llvm_));
  }
};

template <typename T>
void check(const char* type) {
  std::vector<T> x = activationInputs<T>(2001);
  x.resize((x.size() + kThreads - 1) / kThreads * kThreads);
  const Problem problem = *parseProblem(std::string("rms_norm:infer@") + type + "[*x64]", findNorm);
  Functions functions(problem, int64_t(x.size()));
  const cuda::Arch arch = archOf("sm_90");
  auto ir = functions.llvmIr(arch);
  const std::string ptx = llvm::cantFail(cuda::ptx(*ir, arch));
  EXPECT_EQ(ptx.find(".extern"), std::string::npos) << "a call of the device library";
  const auto program = llvm::cantFail(emulator::Program::compile(ptx));
  emulator::Memory memory;
  std::vector<T> y(x.size() * activationFunctions().size());
  llvm::cantFail(memory.add(x.data(), x.size() * sizeof(T), "x", emulator::Access::ReadOnly));
  llvm::cantFail(memory.add(y.data(), y.size() * sizeof(T), "y"));
  const uint64_t words[] = {reinterpret_cast<uint64_t>(x.data()), reinterpret_cast<uint64_t>(y.data())};
  const emulator::Launch launch{
      .function = "k", .grid = {uint32_t(x.size() / kThreads)}, .block = {kThreads}, .words = words};
  const auto report = llvm::cantFail(program.run(launch, memory));
  ASSERT_TRUE(report.ok()) << report.text();
  // ex2.approx and rcp.approx of f32 (Approximations.h) have 2 units more than the roundings in their place.
  const double further = sizeof(T) == 4 ? 2 : 0;
  for (const auto& [i, f] : llvm::enumerate(activationFunctions()))
    expectAccurate(f, x, &y[i * x.size()], further);
}

TEST(CudaActivations, OfF32AreAccurate) { check<float>("f32"); }
TEST(CudaActivations, OfF64AreAccurate) { check<double>("f64"); }

}  // namespace
}  // namespace normc::codegen
