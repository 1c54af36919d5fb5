// Every activation and its derivative as kernels, one phase each, compared with the formulas in long double:
// vectors and the rest of a row, of both generators.
#include <dlfcn.h>
#include <unistd.h>

#include <fstream>

#include "codegen/Compilation.h"
#include "codegen/lower/Expand.h"
#include "codegen/plan/Element.h"
#include "codegen/targets/cpu/BlocksToLlvm.h"
#include "codegen/targets/cpu/Compile.h"
#include "codegen/targets/cpu/Entry.h"
#include "codegen/targets/cpu/Link.h"
#include "codegen/targets/cpu/Object.h"
#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "codegen/targets/halide/HalideTarget.h"
#include "codegen/targets/halide/Process.h"
#include "codegen/targets/halide/Serialize.h"
#include "llvm/IR/Module.h"
#include "runtime/abi/Isa.h"
#include "runtime/abi/kernel.h"
#include "tests/codegen/ActivationValues.h"
#include "tests/end_to_end/Compiled.h"

namespace normc::codegen {
namespace {

/// A kernel whose phase i writes function i of x to y.
class Functions : public Compilation {
 public:
  explicit Functions(const Problem& problem) : Compilation(problem, nullptr) {
    KernelBuilder k(*module_, problem, "f");
    kernel_ = k.kernel();
    for (const auto& [i, f] : llvm::enumerate(activationFunctions()))
      k.phase("p" + std::to_string(i), PhaseRole::Apply, {Axis::Segment, Axis::Row}, [&] {
        k.slab({Axis::Segment, Axis::Row, Axis::Group}, {.resident = true}, [&] {
          k.sweep({.writes = {"y"}}, Parts(k), [&](Element& e) { return Nums{f.emit(k, e[Part::X])}; });
        });
      });
  }
  std::string object(const cpu::Isa& isa, cpu::Emit kind = cpu::Emit::Object) {
    cpu::Schedule schedule = cpu::defaultSchedule(problem_, isa, Strategy::Resident);
    schedule.stream = 0, schedule.fetch = schedule.nta = false;
    kernel_.setScheduleAttr(schedule.attribute(&context_));
    llvm::cantFail(run("lowering", normToLoops(), expandRsqrt(), expandLog(), expandExp(), expandAbs(),
                       cpu::loopsToBlocksPipeline(), cpu::blocksToLlvm(), cpu::addEntryPoints()));
    auto ir = llvm::cantFail(cpu::optimizedLlvm(*module_, isa, llvm_));
    return llvm::cantFail(cpu::machineCode(*ir, isa, kind));
  }
  std::string halideObject(const halide::Generator& generator, const cpu::Isa& isa, llvm::StringRef kind) {
    llvm::cantFail(run("expanding", expandRsqrt(), expandLog(), expandExp(), expandAbs()));
    const halide::Schedule schedule = halide::defaultSchedule(problem_, isa, Strategy::Resident);
    return llvm::cantFail(ask(generator, requestOf(kernel_, schedule, isa, kind))).output;
  }
};

/// Calls the phases of a linked object with one row.
template <typename T>
void expectAccurate(const std::string& shared) {
  const std::string path = testing::TempDir() + "normc-activations-" + std::to_string(getpid()) + ".so";
  std::ofstream(path, std::ios::binary) << shared;
  void* library = dlopen(path.c_str(), RTLD_NOW);
  std::remove(path.c_str());
  ASSERT_TRUE(library) << dlerror();
  const std::vector<T> x = activationInputs<T>(20'001);
  std::vector<T> y(x.size());
  const auto n = int64_t(x.size());
  const normc_operand operands[] = {{const_cast<T*>(x.data()), n, n, 0}, {y.data(), n, n, 0}};
  const double scalars[16] = {};
  const auto& functions = activationFunctions();
  const std::vector<normc_cut> cuts(functions.size(), {1, 1, 1});
  const normc_kernel_args args{operands, scalars, cuts.data(), 1, 1, n};
  for (const auto& [i, f] : llvm::enumerate(functions)) {
    auto phase = reinterpret_cast<normc_phase>(dlsym(library, ("f_p" + std::to_string(i)).c_str()));
    ASSERT_TRUE(phase) << f.name;
    phase(&args, 0);
    expectAccurate(f, x, y.data());
  }
  dlclose(library);
}

/// Instruction set, type, and "halide" or nothing.
using Case = std::tuple<const char*, const char*, const char*>;
class Activations : public testing::TestWithParam<Case> {};

TEST_P(Activations, AreAccurateForEveryInput) {
  const auto [set, type, generator] = GetParam();
  const Problem problem = problemOf(std::string("rms_norm:infer@") + type + "[*x*]");
  const cpu::Isa isa = llvm::cantFail(cpu::findIsa(set));
  Functions functions(problem);
  std::string object;
  if (*generator) {
    auto program = halide::findGenerator();
    if (!program) GTEST_SKIP() << llvm::toString(program.takeError());
    object = functions.halideObject(*program, isa, "object");
  } else {
    object = functions.object(isa);
  }
  const std::string shared = llvm::cantFail(cpu::linkShared({object}, isa));  // nothing is undefined
  const auto needed = findIsa(set);
  if (!needed || !includes(*findIsa(hostIsa().name), *needed))
    GTEST_SKIP() << "a processor with " << set << " is needed";
  if (std::string(type) == "f32")
    expectAccurate<float>(shared);
  else
    expectAccurate<double>(shared);
}

INSTANTIATE_TEST_SUITE_P(All, Activations,
                         testing::Combine(testing::Values("x86-64-v3", "x86-64-v4", "aarch64"),
                                          testing::Values("f32", "f64"), testing::Values("", "halide")),
                         [](const auto& info) {
                           std::string name = std::string(std::get<0>(info.param)) + "_" +
                                              std::get<1>(info.param) + "_" + std::get<2>(info.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace normc::codegen
