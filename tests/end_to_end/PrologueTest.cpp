// Tests a tensor that is added to x before a norm: mean and moment of the sum of two tensors, in every kind
// of slab. The sum is constant where neither tensor is, so the moment is an exact zero only if the shift
// estimate is one of the sum.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "codegen/Compilation.h"
#include "codegen/lower/Expand.h"
#include "codegen/plan/Moments.h"
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
#include "runtime/abi/kernel.h"
#include "tests/end_to_end/Compiled.h"

namespace normc::codegen {
namespace {

struct Shape {
  const char* problem;
  std::vector<Axis> per;
};
const Shape kRows{"layer_norm:backward@f32[*x*]", {Axis::Segment, Axis::Row, Axis::Group}},
    kColumns{"batch_norm:backward@f32[*x*]", {Axis::Feature}},
    kBlocks{"group_norm_segment:backward@f32[*x*x*]{groups=1}", {Axis::Segment, Axis::Group}};

/// A kernel that stores mean and moment of x + dy, and writes the distance from the mean to dx.
class Prologue : public Compilation {
 public:
  Prologue(const Problem& problem, const Shape& shape) : Compilation(problem, nullptr) {
    KernelBuilder k(*module_, problem, "k");
    kernel_ = k.kernel();
    for (const char* name : {"x", "dy", "dx"}) k.argument(name);
    const llvm::StringRef mean = k.workspace("mean", shape.per), moment = k.workspace("moment", shape.per);
    std::vector<Axis> units = shape.per;
    if (units.size() == 3) units.pop_back();  // a task has whole rows
    k.phase("apply", PhaseRole::Apply, units, [&] {
      k.slab(shape.per, {.resident = true}, [&] {
        Parts parts(k);
        parts.argument(Part::Residual, "dy");
        const Moments moments(k, /*needsMean=*/true);
        const Num shift = moments.shift(parts);
        const Nums sums = k.sweep({.sums = 2}, parts, [&](Element& e) { return moments.terms(e); });
        Num n = shape.per.size() == 1 ? k.count(CountScope::All) : k.width(WidthOf::Groups);
        if (shape.per.size() == 2) n = n * k.count(CountScope::Slab);
        const auto batch = moments.ofSlab(sums, shift, n);
        k.store(batch.mean, mean);
        k.store(batch.moment, moment);
        parts.is(Part::Center, batch.mean);
        k.sweep({.writes = {"dx"}}, parts, [&](Element& e) { return Nums{e.centred()}; });
      });
    });
  }
  std::string object(const cpu::Isa& isa) {
    cpu::Schedule schedule = cpu::defaultSchedule(problem_, isa, Strategy::Resident);
    schedule.stream = 0, schedule.fetch = schedule.nta = false;
    kernel_.setScheduleAttr(schedule.attribute(&context_));
    llvm::cantFail(run("lowering", normToLoops(), expandDivision(), expandAbs(), cpu::loopsToBlocksPipeline(),
                       cpu::blocksToLlvm(), cpu::addEntryPoints()));
    auto ir = llvm::cantFail(cpu::optimizedLlvm(*module_, isa, llvm_));
    return llvm::cantFail(cpu::machineCode(*ir, isa, cpu::Emit::Object));
  }
  std::string object(const cpu::Isa& isa, const halide::Generator& generator) {
    const halide::Schedule schedule = halide::defaultSchedule(problem_, isa, Strategy::Resident);
    return llvm::cantFail(ask(generator, requestOf(kernel_, schedule, isa, "object"))).output;
  }
};

void expectExact(const std::string& shared, const Shape& shape, int64_t segments, int64_t rows,
                 int64_t features) {
  SCOPED_TRACE(std::to_string(segments) + " x " + std::to_string(rows) + " x " + std::to_string(features));
  const std::string path = testing::TempDir() + "normc-prologue-" + std::to_string(getpid()) + ".so";
  std::ofstream(path, std::ios::binary) << shared;
  void* library = dlopen(path.c_str(), RTLD_NOW);
  std::remove(path.c_str());
  ASSERT_TRUE(library) << dlerror();
  const auto task = reinterpret_cast<normc_phase>(dlsym(library, "k_apply"));
  ASSERT_TRUE(task);

  const int64_t slabs = shape.per.size() == 1 ? features : shape.per.size() == 2 ? segments : segments * rows;
  std::mt19937 random(1);
  std::uniform_real_distribution<float> value(400, 1500);
  std::vector<float> x, other;
  for (int64_t i = 0; i < segments * rows * features; ++i) {
    x.push_back(value(random));
    other.push_back(777.0F - x.back());  // exact, since neither is twice the other; and so is their sum
  }
  std::vector<float> dx(x.size(), 1), mean(size_t(slabs), 1), moment(size_t(slabs), 1);
  const int64_t all = rows * features;
  const normc_operand operands[] = {{x.data(), all, features, 0},
                                    {other.data(), all, features, 0},
                                    {dx.data(), all, features, 0},
                                    {mean.data(), 0, 0, 0},
                                    {moment.data(), 0, 0, 0}};
  const double scalars[16] = {};
  const normc_cut cut{slabs, slabs, 1};
  const normc_kernel_args args{operands, scalars, &cut, segments, rows, features};
  task(&args, 0);
  EXPECT_EQ(mean, std::vector<float>(size_t(slabs), 777.0F));
  EXPECT_EQ(moment, std::vector<float>(size_t(slabs), 0.0F));
  EXPECT_EQ(dx, std::vector<float>(x.size(), 0.0F));
  dlclose(library);
}

class Prologues : public testing::TestWithParam<const Shape*> {};

TEST_P(Prologues, HaveAShiftOfTheSum) {
  const Shape& shape = *GetParam();
  const Problem problem = problemOf(shape.problem);
  const cpu::Isa isa = hostIsa();
  std::vector<std::string> objects{Prologue(problem, shape).object(isa)};
  if (auto generator = halide::findGenerator())
    objects.push_back(Prologue(problem, shape).object(isa, *generator));
  else
    llvm::consumeError(generator.takeError());
  for (const std::string& object : objects) {
    const std::string shared = llvm::cantFail(cpu::linkShared({object}, isa));
    for (int64_t features : {1, 3, 16, 33, 100, 1000, 20000})
      expectExact(shared, shape, shape.per.size() == 2 ? 2 : 1, 9, features);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Prologues, testing::Values(&kRows, &kColumns, &kBlocks), [](const auto& info) {
  return std::string(info.param == &kRows ? "Rows" : info.param == &kColumns ? "Columns" : "Blocks");
});

}  // namespace
}  // namespace normc::codegen
