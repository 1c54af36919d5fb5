// The combiner max on a GPU: the largest x, the largest |x| and the sum of a slab side by side in one sweep,
// folded over lanes, warps, the block, a cluster and a grid, in three thread orders.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "codegen/Compilation.h"
#include "codegen/emulator/Emulator.h"
#include "codegen/lower/Expand.h"
#include "codegen/plan/Element.h"
#include "codegen/targets/cuda/GridBarrier.h"
#include "codegen/targets/cuda/Intrinsics.h"
#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/LowerToGpu.h"
#include "codegen/targets/cuda/Ptx.h"
#include "dsl/Library.h"
#include "llvm/IR/Module.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "tests/cuda/Emulated.h"

namespace normc::codegen {
namespace {

struct Case {
  const char *name, *problem, *schedule;
  std::vector<Axis> per;  ///< what shares a result: the unit of its phase, too
  int64_t segments, rows;
  int64_t taskUnits;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// A kernel that stores the largest x, the largest |x| and the sum of each slab, and then writes the largest
/// |x| to every y of it.
class Reductions : public Compilation {
 public:
  Reductions(const Problem& problem, const Case& c, const cuda::Schedule& schedule)
      : Compilation(problem, cuda::registerDialects) {
    KernelBuilder k(*module_, problem, "k");
    kernel_ = k.kernel();
    const llvm::StringRef y = k.argument("y");
    const llvm::SmallVector<llvm::StringRef> results{
        k.workspace("largest", c.per), k.workspace("absolute", c.per), k.workspace("sum", c.per)};
    k.phase("reduce", PhaseRole::Statistics, c.per, [&] {
      k.slab(c.per, {.resident = true}, [&] {
        Nums sums =
            k.sweep({.sums = 3, .combiners = {Combiner::Max, Combiner::Max}}, Parts(k), [&](Element& e) {
              const Num x = e[Part::X];
              return Nums{x, abs(x), x};
            });
        for (auto [sum, to] : llvm::zip(sums, results)) k.store(sum, to);
        k.sweep({.writes = {y}}, Parts(k), [&](Element&) { return Nums{sums[1]}; });
      });
    });
    llvm::cantFail(run("planning", cuda::addGridBarrier(schedule)));
  }

  emulator::Program program(const cuda::Schedule& schedule) {
    const cuda::Arch arch = archOf("sm_90");
    llvm::cantFail(run("lowering", cuda::normToGpu(schedule, arch), expandAbs(), cuda::mathToIntrinsics(),
                       cuda::gpuToLlvmPipeline()));
    auto ir =
        llvm::cantFail(cuda::optimizedLlvm(*module_->getOps<mlir::gpu::GPUModuleOp>().begin(), arch, llvm_));
    const std::string ptx = llvm::cantFail(cuda::ptx(*ir, arch));
    EXPECT_NE(ptx.find("max.NaN.f32"), std::string::npos);
    return llvm::cantFail(emulator::Program::compile(ptx));
  }
};

class EmulatedCombiners : public testing::TestWithParam<Case> {};

TEST_P(EmulatedCombiners, FoldTheLargestAtEveryLevel) {
  const Case& c = GetParam();
  const Problem problem = *parseProblem(c.problem, findNorm);
  const cuda::Schedule schedule = llvm::cantFail(cuda::parseSchedule(c.schedule));
  Reductions kernel(problem, c, schedule);
  const auto phase = *kernel.kernel().getOps<PhaseOp>().begin();
  const int64_t features = *problem.features, groups = problem.groups(problem.spec->groups);
  auto extent = [&](Axis axis) {
    return axis == Axis::Segment ? c.segments
           : axis == Axis::Row   ? c.rows
           : axis == Axis::Group ? groups
                                 : features;
  };
  int64_t units = 1;
  for (Axis axis : c.per) units *= extent(axis);
  const int64_t chunks = (units + c.taskUnits - 1) / c.taskUnits;

  emulator::Memory memory;
  const size_t elements = size_t(c.segments * c.rows * features);
  float *x = nullptr, *y = nullptr;
  std::map<std::string, float*> results;
  std::vector<uint64_t> words, strides;
  auto allocate = [&](const std::string& name, size_t bytes, emulator::Content content) {
    void* data = memory.allocate(bytes, name, emulator::Access::ReadWrite, content);
    words.push_back(reinterpret_cast<uint64_t>(data));
    return static_cast<float*>(data);
  };
  void* arrivals = nullptr;
  const size_t arrivalBytes = size_t(chunks * schedule.grid) * 8;
  for (auto t : kernel.kernel().getOps<TensorOp>()) {
    const std::string name = t.getSymName().str();
    if (name == "x" || name == "y") {
      (name == "x" ? x : y) =
          allocate(name, elements * 4,
                   name == "x" ? emulator::Content::Initialised : emulator::Content::Uninitialised);
      strides.insert(strides.end(), {uint64_t(c.rows * features), uint64_t(features)});
    } else if (name == cuda::barrierCountsName(phase)) {
      arrivals = allocate(name, arrivalBytes, emulator::Content::Initialised);
    } else if (name == cuda::partsName(phase)) {
      allocate(name, size_t(chunks * t.getWindow() * features) * 4, emulator::Content::Uninitialised);
    } else {
      results[name] = allocate(name, size_t(units) * 4, emulator::Content::Uninitialised);
    }
  }
  words.insert(words.end(), strides.begin(), strides.end());
  for (int64_t n : {c.segments, c.rows, features}) words.push_back(uint64_t(n));
  words.insert(words.end(), kernel.kernel().getNumbers().size(), 0);
  for (int64_t n : {units, c.taskUnits, chunks}) words.push_back(uint64_t(n));

  const cuda::Launch launch = cuda::launchOf(phase, schedule);
  const cuda::EntryNames names = cuda::entryNames(kernel.kernel(), phase, schedule);
  const bool aligned = features % schedule.vector == 0 || names.unaligned.empty();
  const emulator::Program program = kernel.program(schedule);

  // All are negative, so an identity of 0 would be seen; one slab has a NaN.
  std::mt19937 random(7);
  std::uniform_int_distribution<int> value(-200, -2);
  for (size_t i = 0; i < elements; ++i) x[i] = float(value(random)) / 8;
  x[elements / 2] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> largest(size_t(units), -INFINITY), absolute = largest, sum(size_t(units), 0);
  std::vector<size_t> slabOf;
  for (int64_t s = 0; s < c.segments; ++s)
    for (int64_t r = 0; r < c.rows; ++r)
      for (int64_t f = 0; f < features; ++f) {
        int64_t slab = 0;
        for (Axis axis : c.per)
          slab = slab * extent(axis) + (axis == Axis::Segment ? s
                                        : axis == Axis::Row   ? r
                                        : axis == Axis::Group ? f / (features / groups)
                                                              : f);
        const float v = x[slabOf.size()];
        auto take = [&](float& most, float w) { most = std::isnan(w) || !(most >= w) ? w : most; };
        if (!std::isnan(largest[size_t(slab)])) take(largest[size_t(slab)], v);
        if (!std::isnan(absolute[size_t(slab)])) take(absolute[size_t(slab)], std::fabs(v));
        sum[size_t(slab)] += v;
        slabOf.push_back(size_t(slab));
      }

  using emulator::Order;
  auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (Order order : {Order::Ascending, Order::Descending, Order::Random}) {
    if (arrivals) std::memset(arrivals, 0, arrivalBytes);
    const emulator::Launch call{.function = aligned ? names.aligned : names.unaligned,
                                .grid = {uint32_t(chunks * launch.cluster * launch.grid), 1, 1},
                                .block = {uint32_t(launch.threads), 1, 1},
                                .cluster = {uint32_t(launch.cluster), 1, 1},
                                .sharedBytes = uint32_t(launch.shared),
                                .cooperative = launch.grid > 1,
                                .words = words};
    const emulator::Report report = llvm::cantFail(program.run(call, memory, {.order = order}));
    ASSERT_TRUE(report.ok()) << report.text();
    for (size_t i = 0; i < size_t(units); ++i) {
      EXPECT_TRUE(same(results["work.largest"][i], largest[i])) << i << " " << results["work.largest"][i];
      EXPECT_TRUE(same(results["work.absolute"][i], absolute[i])) << i << " " << results["work.absolute"][i];
      if (!std::isnan(sum[i])) EXPECT_NEAR(results["work.sum"][i], sum[i], 1e-5 * std::fabs(sum[i]));
    }
    for (size_t i = 0; i < elements; ++i) ASSERT_TRUE(same(y[i], absolute[slabOf[i]])) << i;
  }
}

const std::vector<Axis> kRow{Axis::Segment, Axis::Row}, kBlock{Axis::Segment, Axis::Group},
    kColumn{Axis::Feature};
constexpr const char *kLayer = "layer_norm:infer@f32[*x128]", *kOdd = "layer_norm:infer@f32[*x99]",
                     *kGroups = "group_norm_segment:infer@f32[*x*x96]{groups=4}",
                     *kBatch = "batch_norm:infer@f32[*x64]";
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedCombiners,
    testing::Values(
        Case{"Lanes", kLayer, "resident,threads=64,team=32,vector=4,tile=1", kRow, 1, 7, 3},
        Case{"Warps", kLayer, "resident,threads=128,team=64,vector=1,tile=2", kRow, 1, 7, 3},
        Case{"Loop", kLayer, "resident,threads=64,team=8,vector=4,tile=0", kRow, 1, 7, 3},
        Case{"Ends", kOdd, "resident,threads=64,team=32,vector=4,tile=1", kRow, 1, 7, 3},
        Case{"Shared", kLayer, "resident,threads=32,team=8,vector=4,tile=2,shared=2", kRow, 1, 5, 3},
        Case{"Ahead", kLayer, "resident,threads=64,team=32,vector=4,tile=1,prefetch=3", kRow, 1, 9, 5},
        Case{"Cluster", kLayer, "resident,threads=64,team=32,vector=1,tile=2,cluster=2", kRow, 1, 7, 4},
        Case{"Grid", kLayer, "resident,threads=64,team=32,vector=1,tile=2,chunks=1,grid=2", kRow, 1, 7, 7},
        Case{"Block", kGroups, "resident,threads=64,team=8,vector=4,tile=1,rows=2", kBlock, 2, 9, 3},
        Case{"Column", kBatch, "resident,threads=64,team=8,vector=4,tile=1,rows=2", kColumn, 1, 37, 32},
        Case{"HeldColumn", kBatch, "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2", kColumn, 1, 37,
             32},
        Case{"ColumnOfCluster", kBatch, "resident,threads=64,team=8,vector=4,tile=1,rows=2,cluster=2",
             kColumn, 1, 37, 32},
        Case{"ColumnOfGrid", kBatch, "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=1,grid=3",
             kColumn, 1, 37, 32}),
    [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace normc::codegen
