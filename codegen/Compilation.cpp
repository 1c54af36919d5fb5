#include "codegen/Compilation.h"

#include <mutex>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace mlir;

namespace normc::codegen {

static DialectRegistry dialects(void (*target)(DialectRegistry&)) {
  static std::once_flag once;
  std::call_once(once, [] { registerAllPasses(); });
  DialectRegistry registry;
  registry.insert<NormDialect, arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
  if (target) target(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  return registry;
}

Compilation::Compilation(const Problem& problem, void (*target)(DialectRegistry&))
    : problem_(problem),
      context_(dialects(target), MLIRContext::Threading::DISABLED),
      module_(ModuleOp::create(UnknownLoc::get(&context_))) {
  context_.loadAllAvailableDialects();
  context_.getDiagEngine().registerHandler([this](mlir::Diagnostic& d) { diagnostics_ += d.str() + "\n"; });
}

std::string Compilation::text() {
  std::string text;
  llvm::raw_string_ostream(text) << *module_;
  return text;
}

llvm::Error Compilation::plan(Strategy strategy, StringRef symbol, int64_t vector) {
  auto kernel = planKernel(*module_, problem_, strategy, symbol, vector);
  if (!kernel) return kernel.takeError();
  kernel_ = *kernel;
  return llvm::Error::success();
}

bool Compilation::add(PassManager& passes, PassPtr pass) {
  passes.addPass(std::move(pass));
  return true;
}

bool Compilation::add(PassManager& passes, StringRef pipeline) {
  return succeeded(parsePassPipeline(pipeline, passes));
}

/// Calls a function after each pass.
class AfterPass : public PassInstrumentation {
 public:
  explicit AfterPass(std::function<void(StringRef)> function) : function_(std::move(function)) {}
  void runAfterPass(Pass* pass, Operation*) override {
    // A nest of passes has no name.
    if (!pass->getArgument().empty()) function_(pass->getArgument());
  }

 private:
  std::function<void(StringRef)> function_;
};

llvm::Error Compilation::run(StringRef step, PassManager& passes) {
  passes.enableVerifier(false);  // only the final result is verified, not the output of each pass
  passes.addInstrumentation(std::make_unique<AfterPass>([this](StringRef pass) {
    ran_.push_back({pass.str(), llvm::is_contained(shown_, pass) ? text() : std::string()});
  }));
  return failed(passes.run(*module_)) || failed(verify(*module_)) ? fault(step) : llvm::Error::success();
}

llvm::Error Compilation::fault(StringRef step) {
  return llvm::createStringError(step.str() + " failed for " + problem_.text() +
                                 "; this is a fault of normc\n" + diagnostics_);
}

}  // namespace normc::codegen
