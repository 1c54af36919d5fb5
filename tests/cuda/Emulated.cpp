#include "tests/cuda/Emulated.h"

#include <gtest/gtest.h>

#include "dsl/Print.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "tests/end_to_end/Questions.h"

namespace normc {

codegen::cuda::Arch archOf(const std::string& name) { return llvm::cantFail(codegen::cuda::findArch(name)); }

codegen::cuda::Schedule defaultOf(const Problem& problem, const codegen::cuda::Arch& arch) {
  return codegen::cuda::defaultSchedule(problem, arch, codegen::legalStrategies(problem).front());
}

Damage withoutWait(int n) {
  return {.code = [n](llvm::Module& ir) {
    for (llvm::Function& f : ir) {
      int wait = 0;
      for (llvm::Instruction& i : llvm::make_early_inc_range(llvm::instructions(f))) {
        auto* load = llvm::dyn_cast<llvm::LoadInst>(&i);
        if (!load || !load->isAtomic() || wait++ != n) continue;
        load->replaceAllUsesWith(llvm::ConstantInt::get(load->getType(), 1 << 20));
        load->eraseFromParent();
      }
    }
  }};
}

Emulated::~Emulated() {
  normc_plan_destroy(plan);
  normc_package_destroy(package);
  normc_context_destroy(context);
  device.reset();
}

static void prepare(Emulated& e, const Problem& problem, const codegen::cuda::Schedule& schedule,
                    const codegen::cuda::Arch& arch, const Damage& damage) {
  auto driver = emulator::EmulatedDriver::open(NORMC_FAKE_CUDA, int(arch.number / 10), int(arch.number % 10));
  if (!driver) return void(e.error = llvm::toString(driver.takeError()));
  e.driver = std::move(*driver);
  e.driver->guardBytes = 256;  // as the gate's buffers have them
  llvm::Error failure = llvm::Error::success();
  std::unique_ptr<emulator::Program> program;
  codegen::cuda::CompileOptions options{.assemble = false};
  options.observe = [&](const llvm::Module& ir) {
    auto copy = llvm::CloneModule(ir);
    if (damage.code) damage.code(*copy);
    auto compiled = emulator::Program::compile(*copy);
    if (compiled)
      program = std::make_unique<emulator::Program>(std::move(*compiled));
    else
      e.error = llvm::toString(compiled.takeError());
  };
  auto kernel = codegen::cuda::compileKernel(problem, schedule, arch, "k", options);
  llvm::consumeError(std::move(failure));
  if (!kernel) return void(e.error = llvm::toString(kernel.takeError()));
  if (!program) return;
  std::vector<emulator::EmulatedDriver::Operand> operands;
  for (const package::Operand& o : kernel->manifest.operands) {
    const bool tensor = o.role == package::Role::Tensor, written = o.written();
    operands.push_back({tensor ? o.name : std::string(name(o.role)) + "." + o.name, written, !written});
  }
  e.driver->add(kernel->ptx, std::move(*program), std::move(operands));

  package::Writer writer({{"normc", "test"}});
  e.manifest = kernel->manifest;
  if (damage.manifest) damage.manifest(e.manifest);
  e.manifest.norm = writer.addNorm(problem.spec->name, problem.spec->structuralHash(), print(*problem.spec));
  e.manifest.blob = writer.addBlob(kernel->ptx, "ptx", arch.name);
  writer.addKernel(e.manifest);
  const std::string bytes = writer.bytes();

  normc_context_options contextOptions{
      .struct_size = sizeof contextOptions, .max_threads = 1, .cuda_library = NORMC_FAKE_CUDA};
  const std::string text = problem.text();
  normc_request request{.struct_size = sizeof request, .problem = text.c_str(), .device_type = kDLCUDA};
  if (normc_context_create(&contextOptions, &e.context) != NORMC_OK ||
      normc_package_open_memory(e.context, bytes.data(), bytes.size(), &e.package) != NORMC_OK ||
      normc_plan_create(e.package, &request, &e.plan) != NORMC_OK)
    return void(e.error = normc_last_error());
  e.device = std::make_unique<gate::CudaDevice>(0, NORMC_FAKE_CUDA);
}

std::unique_ptr<Emulated> emulated(const Problem& problem, const codegen::cuda::Schedule& schedule,
                                   const codegen::cuda::Arch& arch, const Damage& damage) {
  auto result = std::make_unique<Emulated>();
  prepare(*result, problem, schedule, arch, damage);
  return result;
}

gate::Verdict Emulated::judgeInEveryOrder(const Problem& problem) {
  using emulator::Order;
  gate::Verdict verdict;
  for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
    for (Order order : {Order::Ascending, Order::Random}) {  // and each time another one
      driver->options.order = order;
      verdict = judge(problem, question);
      if (!verdict.ok) return verdict;
    }
  }
  return verdict;
}

gate::Verdict Emulated::judge(const Problem& problem, const gate::Trial& trial) {
  const auto question = gate::questionFor(problem, trial);
  if (!question) return {.ok = false, .text = text(question.errors())};
  return judge(problem, *question);
}

gate::Verdict Emulated::judge(const Problem& problem, const gate::Question& question) {
  using emulator::Order;
  const emulator::Options first = driver->options;
  gate::Verdict verdict = gate::judge(plan, problem, question, device.get(), [&] {
    emulator::Options& second = driver->options;
    if (first.order == Order::Random)
      ++second.seed;
    else
      second.order = first.order == Order::Ascending ? Order::Descending : Order::Ascending;
  });
  driver->options = first;
  launches = driver->takeLaunches();
  for (const auto& launched : launches) {
    if (launched.report.ok()) continue;
    verdict.ok = false;
    verdict.text += "\n" + launched.report.text();
    break;
  }
  if (!verdict.ok)
    verdict.text = problem.text() + " " + manifest.schedule + " " + manifest.isa + ": " + verdict.text;
  return verdict;
}

}  // namespace normc
