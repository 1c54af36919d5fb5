// The combiner max as kernels: the largest x, the largest |x| and the sum of a slab side by side in one
// sweep. Every kind of slab, every rest of a vector, masked rows, and the same bits for any cut into tasks.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <fstream>
#include <random>

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
#include "tests/Sample.h"
#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Demand.h"

namespace normc::codegen {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                kNaN = std::numeric_limits<float>::quiet_NaN();

/// The axes that index a statistic, and the units of its phase. With `split` a task has some features of each
/// row, and a second phase combines the chunks.
struct Shape {
  std::string problem;
  std::vector<Axis> per, units;
  bool split = false;
};
const std::vector<Axis> kRow{Axis::Segment, Axis::Row}, kFeature{Axis::Feature};

/// A kernel that stores the largest x, the largest |x| and the sum of each slab, and then writes the largest
/// |x| to every y of it.
class Reductions : public Compilation {
 public:
  Reductions(const Problem& problem, const Shape& shape) : Compilation(problem, nullptr) {
    KernelBuilder k(*module_, problem, "k");
    kernel_ = k.kernel();
    std::vector<Axis> axes = shape.per;
    if (shape.split) axes.insert(axes.begin(), Axis::Chunk);
    const auto chunks = shape.split ? std::optional<int64_t>(0) : std::nullopt;
    const llvm::StringRef y = k.argument("y");
    const llvm::SmallVector<llvm::StringRef> results{k.workspace("largest", axes, chunks),
                                                     k.workspace("absolute", axes, chunks),
                                                     k.workspace("sum", axes, chunks)};
    k.phase("reduce", PhaseRole::Statistics, shape.units, [&] {
      k.slab(shape.per, {.resident = true}, [&] {
        Nums sums =
            k.sweep({.sums = 3, .combiners = {Combiner::Max, Combiner::Max}}, Parts(k), [&](Element& e) {
              const Num x = e[Part::X], none = k.constant(identityOf(Combiner::Max));
              const Num valid = problem.mask ? e.valid() : Num();
              auto largest = [&](Num v) { return valid ? select(valid, v, none) : v; };
              return Nums{largest(x), largest(abs(x)), e.where(valid, x)};
            });
        for (auto [sum, to] : llvm::zip(sums, results)) k.store(sum, to);
        if (!shape.split) k.sweep({.writes = {y}}, Parts(k), [&](Element&) { return Nums{sums[1]}; });
      });
    });
    if (!shape.split) return;
    k.phase("combine", PhaseRole::Combine, kRow, [&] {
      k.slab(kRow, {}, [&] {
        k.store(k.narrow(k.total(0, results[0], Combiner::Max)[0]), k.workspace("all", kRow));
        k.store(k.narrow(k.total(0, results[1], Combiner::Max)[0]), k.workspace("all_absolute", kRow));
        k.store(k.narrow(k.total(0, results[2])[0]), k.workspace("all_sum", kRow));
      });
    });
  }
  std::vector<std::string> tensors() {
    std::vector<std::string> names;
    for (auto t : kernel_.getOps<TensorOp>()) names.push_back(t.getSymName().str());
    return names;
  }
  std::string shared(const cpu::Schedule& schedule, const cpu::Isa& isa) {
    kernel_.setScheduleAttr(schedule.attribute(&context_));
    llvm::cantFail(run("lowering", normToLoops(), expandAbs(),
                       expandBF16(isa.roundsBF16, isa.masks16 ? isa.vectorBytes / 2 : 0),
                       cpu::loopsToBlocksPipeline(), cpu::blocksToLlvm(), cpu::addEntryPoints()));
    auto ir = llvm::cantFail(cpu::optimizedLlvm(*module_, isa, llvm_));
    return linked(llvm::cantFail(cpu::machineCode(*ir, isa, cpu::Emit::Object)), isa);
  }
  std::string shared(const halide::Generator& generator, const halide::Schedule& schedule,
                     const cpu::Isa& isa) {
    return linked(llvm::cantFail(ask(generator, requestOf(kernel_, schedule, isa, "object"))).output, isa);
  }

 private:
  static std::string linked(const std::string& object, const cpu::Isa& isa) {
    return llvm::cantFail(cpu::linkShared({object}, isa));  // nothing is undefined
  }
};

/// A batch, and what a kernel makes of it.
struct Batch {
  int64_t segments = 1, rows = 1, features = 1;
  std::vector<float> x;  ///< in the order segment, row, feature, whatever the layout
  std::vector<uint8_t> mask;
  float at(int64_t segment, int64_t row, int64_t feature) const {
    return x[size_t((segment * rows + row) * features + feature)];
  }
};
struct Results {
  std::vector<float> largest, absolute, sum, y;
};

/// Returns values that f32 and bf16 both hold, most of them negative.
Batch drawn(int64_t segments, int64_t rows, int64_t features, unsigned seed) {
  Batch batch{segments, rows, features, {}, {}};
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> value(-200, 2);
  for (int64_t i = 0; i < segments * rows * features; ++i) batch.x.push_back(float(value(random)) / 8);
  for (int64_t i = 0; i < segments * rows; ++i) batch.mask.push_back(random() % 4 != 0);
  return batch;
}

/// A kernel that is loaded.
class Loaded {
 public:
  Loaded(const Shape& shape, const cpu::Schedule& schedule, const cpu::Isa& isa = hostIsa())
      : Loaded(shape, [&](Reductions& kernel) { return kernel.shared(schedule, isa); }) {}
  Loaded(const Shape& shape, const halide::Generator& generator, const halide::Schedule& schedule)
      : Loaded(shape, [&](Reductions& kernel) { return kernel.shared(generator, schedule, hostIsa()); }) {}
  Loaded(const Loaded&) = delete;
  ~Loaded() { dlclose(library_); }

  /// Runs every task of every phase, the last task first. A task has `chunkUnits` units of the first phase.
  Results run(const Batch& b, int64_t chunkUnits) const {
    auto extent = [&](Axis axis) {
      return axis == Axis::Segment ? b.segments
             : axis == Axis::Row   ? b.rows
             : axis == Axis::Group ? problem_.groups(problem_.spec->groups)
                                   : b.features;
    };
    auto product = [&](const std::vector<Axis>& axes) {
      int64_t n = 1;
      for (Axis axis : axes) n *= extent(axis);
      return n;
    };
    const int64_t units = product(shape_.units), chunks = (units + chunkUnits - 1) / chunkUnits;
    const int64_t slabs = product(shape_.per);
    const bool last = problem_.layout == Layout::FeaturesLast;
    const int64_t inner = last ? b.features : b.rows, outer = last ? b.rows : b.features;
    auto place = [&](int64_t s, int64_t r, int64_t f) {
      return size_t((s * outer + (last ? r : f)) * inner + (last ? f : r));
    };
    std::vector<float> x(b.x.size()), y(b.x.size(), kNaN);
    for (int64_t s = 0; s < b.segments; ++s)
      for (int64_t r = 0; r < b.rows; ++r)
        for (int64_t f = 0; f < b.features; ++f) x[place(s, r, f)] = b.at(s, r, f);
    std::vector<uint16_t> narrowX(x.size()), narrowY(x.size());
    for (size_t i = 0; i < x.size(); ++i) narrowX[i] = uint16_t(std::bit_cast<uint32_t>(x[i]) >> 16);
    std::map<std::string, std::vector<float>> work;
    std::vector<normc_operand> operands;
    std::vector<uint8_t> mask = b.mask;
    for (const std::string& name : names_) {
      if (name == "x" || name == "y") {
        auto& wide = name == "x" ? x : y;
        auto& narrow = name == "x" ? narrowX : narrowY;
        void* data = bf16_ ? static_cast<void*>(narrow.data()) : wide.data();
        operands.push_back({data, outer * inner, inner, 0});
      } else if (name == "mask") {
        operands.push_back({mask.data(), b.rows, 1, 0});
      } else {
        std::vector<float>& memory = work[name];
        const bool ofChunks = shape_.split && !name.starts_with("work.all");
        memory.assign(size_t(slabs * (ofChunks ? chunks : 1)), kNaN);
        operands.push_back({memory.data(), 0, 0, 0});
      }
    }
    const double scalars[16] = {};
    const normc_cut cuts[] = {{units, chunkUnits, chunks}, {slabs, 1, slabs}};
    const normc_kernel_args args{operands.data(), scalars, cuts, b.segments, b.rows, b.features};
    for (int phase = 0; phase < (shape_.split ? 2 : 1); ++phase) {
      auto task = reinterpret_cast<normc_phase>(dlsym(library_, phase ? "k_combine" : "k_reduce"));
      EXPECT_TRUE(task);
      for (int64_t t = cuts[phase].chunks; t-- > 0;) task(&args, t);
    }
    if (shape_.split) return {work["work.all"], work["work.all_absolute"], work["work.all_sum"], {}};
    Results results{work["work.largest"], work["work.absolute"], work["work.sum"],
                    std::vector<float>(x.size())};
    for (int64_t s = 0, i = 0; s < b.segments; ++s)
      for (int64_t r = 0; r < b.rows; ++r)
        for (int64_t f = 0; f < b.features; ++f, ++i) {
          const size_t at = place(s, r, f);
          results.y[size_t(i)] = bf16_ ? std::bit_cast<float>(uint32_t(narrowY[at]) << 16) : y[at];
        }
    return results;
  }

  /// Returns the results as the definitions give them, and the slab of each element as `y`.
  Results expected(const Batch& b) const {
    const int64_t groups = problem_.groups(problem_.spec->groups);
    Results e;
    e.y.resize(b.x.size());
    std::vector<int64_t> slabOf;
    for (int64_t s = 0; s < b.segments; ++s)
      for (int64_t r = 0; r < b.rows; ++r)
        for (int64_t f = 0; f < b.features; ++f) {
          int64_t slab = 0;
          for (Axis axis : shape_.per)
            slab = axis == Axis::Segment ? slab * b.segments + s
                   : axis == Axis::Row   ? slab * b.rows + r
                   : axis == Axis::Group ? slab * groups + f / (b.features / groups)
                                         : slab * b.features + f;
          slabOf.push_back(slab);
          const size_t n = std::max(e.largest.size(), size_t(slab + 1));
          e.largest.resize(n, -kInfinity), e.absolute.resize(n, -kInfinity), e.sum.resize(n, 0);
          if (problem_.mask && !b.mask[size_t(s * b.rows + r)]) continue;
          const float v = b.at(s, r, f);
          e.sum[size_t(slab)] += v;
          for (auto [largest, term] : {std::pair(&e.largest, v), std::pair(&e.absolute, std::abs(v))}) {
            float& to = (*largest)[size_t(slab)];
            if (std::isnan(term) || term > to || (term == to && !std::signbit(term))) to = term;
          }
        }
    for (size_t i = 0; i < slabOf.size(); ++i) e.y[i] = e.absolute[size_t(slabOf[i])];
    return e;
  }

 private:
  Loaded(const Shape& shape, const std::function<std::string(Reductions&)>& compiled)
      : shape_(shape), problem_(problemOf(shape.problem)), bf16_(problem_.data == DType::BF16) {
    Reductions kernel(problem_, shape);
    names_ = kernel.tensors();
    const std::string path = testing::TempDir() + "normc-reductions-" + std::to_string(getpid()) + ".so";
    std::ofstream(path, std::ios::binary) << compiled(kernel);
    library_ = dlopen(path.c_str(), RTLD_NOW);
    std::remove(path.c_str());
    EXPECT_TRUE(library_) << dlerror();
  }

  Shape shape_;
  Problem problem_;
  bool bf16_;
  std::vector<std::string> names_;
  void* library_ = nullptr;
};

/// Returns the bits, those of every NaN the same.
std::vector<uint32_t> bits(const std::vector<float>& v) {
  std::vector<uint32_t> all;
  for (float f : v) all.push_back(std::bit_cast<uint32_t>(std::isnan(f) ? kNaN : f));
  return all;
}

/// Expects the exact results of the batch for several cuts. Sums of these values are exact too.
void expectExact(const Loaded& kernel, const Batch& batch, std::initializer_list<int64_t> cuts) {
  const Results expected = kernel.expected(batch);
  for (int64_t chunkUnits : cuts) {
    const Results got = kernel.run(batch, chunkUnits);
    SCOPED_TRACE(std::to_string(batch.segments) + " x " + std::to_string(batch.rows) + " x " +
                 std::to_string(batch.features) + ", tasks of " + std::to_string(chunkUnits));
    ASSERT_EQ(bits(got.largest), bits(expected.largest));
    ASSERT_EQ(bits(got.absolute), bits(expected.absolute));
    ASSERT_EQ(bits(got.sum), bits(expected.sum));
    if (!got.y.empty()) ASSERT_EQ(bits(got.y), bits(expected.y));
  }
}

/// Returns the instruction sets of this processor whose code for a type differs: in the length of vectors,
/// and for 16 bits in the conversions too.
std::vector<cpu::Isa> setsFor(std::string_view type) {
  std::vector<cpu::Isa> all;
  for (const cpu::Isa& isa : cpu::instructionSets()) {
    const auto set = findIsa(isa.name.str());
    if (!set || !includes(*findIsa(normc::hostIsa().name), *set)) continue;
    if (type == "f32" && !all.empty() && all.back().vectorBytes == isa.vectorBytes) continue;
    all.push_back(isa);
  }
  return all;
}

/// Returns schedules that differ in every knob by which the lowering combines values.
std::vector<cpu::Schedule> schedules(const Shape& shape) {
  const Problem problem = problemOf(shape.problem);
  const bool bf16 = problem.data == DType::BF16;
  cpu::Schedule s = cpu::defaultSchedule(problem, hostIsa(), Strategy::Resident);
  s.stream = 0, s.fetch = s.nta = false, s.ahead = false, s.inTurn = false, s.scalarTail = false;
  std::vector<cpu::Schedule> all;
  for (auto [vector, rows, unroll] :
       {std::array<int64_t, 3>{8, 1, 1}, {8, 4, 2}, {4, 8, 1}, {bf16 ? 32 : 16, 2, 4}}) {
    s.vector = vector, s.rows = rows, s.unroll = unroll;
    all.push_back(s);
    all.push_back(s), all.back().scalarTail = true;
  }
  all[2].ahead = all[5].ahead = shape.per == kRow && !shape.split;
  all[3].inTurn = true;
  return all;
}

TEST(Reductions, LargestOfARowOfAnyLength) {
  for (const char* type : {"f32", "bf16"}) {
    const Shape shape{std::string("layer_norm:infer@") + type + "[*x*]", kRow, kRow};
    for (const cpu::Schedule& schedule : schedules(shape)) {
      SCOPED_TRACE(type + (", " + schedule.text()));
      for (const cpu::Isa& isa : setsFor(type)) {
        const Loaded kernel(shape, schedule, isa);
        for (int64_t n = 1; n <= 200; ++n) expectExact(kernel, drawn(1, 11, n, unsigned(n)), {1, 4, 11});
        expectExact(kernel, drawn(1, 3, 5000, 1), {1, 3});
      }
    }
  }
}

TEST(Reductions, LargestOfARowOfKnownLength) {
  for (const char* type : {"f32", "bf16"})
    for (int64_t n : {1, 7, 33, 100, 1021}) {
      const Shape shape{std::string("layer_norm:infer@") + type + "[*x" + std::to_string(n) + "]", kRow,
                        kRow};
      for (const cpu::Schedule& schedule : schedules(shape)) {
        SCOPED_TRACE(type + (", " + schedule.text()));
        expectExact(Loaded(shape, schedule), drawn(1, 11, n, unsigned(n)), {1, 11});
      }
    }
}

/// Returns a shape for each kind of slab.
std::vector<Shape> everyKind() {
  const std::vector<Axis> channel{Axis::Segment, Axis::Feature}, group{Axis::Segment, Axis::Group};
  const std::vector<Axis> rowGroup{Axis::Segment, Axis::Row, Axis::Group};
  return {
      {"group_norm:infer@f32[*x*]{groups=4}", rowGroup, kRow},  // a block of a row
      {"group_norm:infer@bf16[*x*]{groups=4}", rowGroup, kRow},
      {"instance_norm:infer@f32[*x*x*]{layout=channels_first}", channel, channel},  // run
      {"group_norm_segment:infer@f32[*x*x*]{groups=4}", group, group},              // block
      {"group_norm_segment:infer@f32[*x*x*]{groups=4,layout=channels_first}", group, group},
      {"batch_norm:infer@f32[*x*x*]{layout=channels_first}", kFeature, kFeature},
      {"instance_norm:infer@f32[*x*x*]", channel, {Axis::Segment}},  // column
      {"batch_norm:infer@bf16[*x*]", kFeature, kFeature},
      {"batch_norm:infer@f32[*x*]{mask}", kFeature, kFeature},
  };
}

TEST(Reductions, LargestInEveryKindOfSlab) {
  for (const Shape& shape : everyKind())
    for (const cpu::Schedule& schedule : schedules(shape)) {
      SCOPED_TRACE(shape.problem + ", " + schedule.text());
      const Loaded kernel(shape, schedule);
      const bool segments = problemOf(shape.problem).segmented;
      for (int64_t features : {4, 28, 132})
        for (int64_t rows : {1, 5, 40, 300})
          expectExact(kernel, drawn(segments ? 3 : 1, rows, features, unsigned(rows)), {128, 2048});
    }
}

TEST(Reductions, LargestOverTheTasksThatShareARow) {
  const Shape shape{"layer_norm:infer@f32[*x*]", kRow, kFeature, /*split=*/true};
  for (const cpu::Schedule& schedule : schedules(shape)) {
    SCOPED_TRACE(schedule.text());
    expectExact(Loaded(shape, schedule), drawn(1, 9, 777, 3), {1, 32, 100, 777});
  }
}

struct ByHalide {
  Shape shape;
  bool scalarTail;
};
class ReductionsByHalide : public testing::TestWithParam<ByHalide> {};

TEST_P(ReductionsByHalide, OfTheLargest) {
  const auto& [shape, scalarTail] = GetParam();
  auto generator = halide::findGenerator();
  if (!generator) GTEST_SKIP() << llvm::toString(generator.takeError());
  const Problem problem = problemOf(shape.problem);
  halide::Schedule schedule = halide::defaultSchedule(problem, hostIsa(), Strategy::Resident);
  schedule.scalarTail = scalarTail, schedule.unroll = scalarTail ? 1 : 2;
  SCOPED_TRACE(shape.problem + ", " + schedule.text());
  const Loaded kernel(shape, *generator, schedule);
  for (int64_t features : {4, 28, 132, 1000})
    for (int64_t rows : {1, 5, 40, 300})
      expectExact(kernel, drawn(problem.segmented ? 3 : 1, rows, features, unsigned(rows)), {128, 2048});
  if (shape.per != kRow) return;
  Batch spoiled = drawn(1, 11, 37, 7);
  spoiled.x[0] = spoiled.x[5 * 37 + 36] = spoiled.x[10 * 37 + 20] = kNaN;
  for (size_t i = 37; i < 3 * 37; ++i) spoiled.x[i] = i % 37 == 20 ? 0.0f : -0.0f;
  for (size_t i = 3 * 37; i < 4 * 37; ++i) spoiled.x[i] = -kInfinity;
  spoiled.x[4 * 37 + 9] = kInfinity;
  expectExact(kernel, spoiled, {4, 11});
}

/// The sample has each shape with one kind of tail, the kinds in turn.
Divided<ByHalide> byHalide() {
  std::vector<Shape> shapes = everyKind();
  shapes.push_back({"layer_norm:infer@f32[*x*]", kRow, kRow});
  shapes.push_back({"layer_norm:infer@bf16[*x*]", kRow, kRow});
  Divided<ByHalide> all;
  for (size_t i = 0; i < shapes.size(); ++i)
    for (bool scalarTail : {false, true})
      (scalarTail == (i % 2 == 1) ? all.sample : all.rest).push_back({shapes[i], scalarTail});
  return all;
}
NORMC_INSTANTIATE_SAMPLE(Kinds, ReductionsByHalide, byHalide(), [](const auto& info) {
  return testName(info.param.shape.problem) + (info.param.scalarTail ? "_scalar_tail" : "");
});

TEST(Reductions, NaNStaysInItsRow) {
  for (const char* type : {"f32", "bf16"}) {
    const Shape shape{std::string("layer_norm:infer@") + type + "[*x*]", kRow, kRow};
    for (const cpu::Schedule& schedule : schedules(shape)) {
      SCOPED_TRACE(type + (", " + schedule.text()));
      const Loaded kernel(shape, schedule);
      for (int64_t n : {1, 5, 37, 64, 200}) {
        Batch batch = drawn(1, 11, n, 7);
        for (int64_t row : {0, 3, 10})
          for (int64_t at : {int64_t(0), n / 2, n - 1}) {
            Batch spoiled = batch;
            spoiled.x[size_t(row * n + at)] = kNaN;
            expectExact(kernel, spoiled, {11});
            spoiled.x[size_t(row * n + n / 3)] = kInfinity;  // whichever comes first
            expectExact(kernel, spoiled, {4});
          }
      }
    }
  }
}

TEST(Reductions, InfinitiesAndSignsOfZero) {
  const Shape shape{"layer_norm:infer@f32[*x*]", kRow, kRow};
  for (const cpu::Schedule& schedule : schedules(shape)) {
    SCOPED_TRACE(schedule.text());
    const Loaded kernel(shape, schedule);
    for (int64_t n : {1, 5, 37, 64, 200}) {
      Batch batch = drawn(1, 11, n, 7);
      for (int64_t i = 0; i < n; ++i) {
        batch.x[size_t(i)] = -kInfinity;
        batch.x[size_t(n + i)] = i == n / 2 ? 0.0f : -0.0f;
        batch.x[size_t(2 * n + i)] = std::numeric_limits<float>::denorm_min() * (i == n / 2 ? 2 : 1);
      }
      const Results got = kernel.run(batch, 11), expected = kernel.expected(batch);
      EXPECT_EQ(bits(got.largest), bits(expected.largest));
      EXPECT_EQ(got.largest[0], -kInfinity);
      EXPECT_FALSE(std::signbit(got.largest[1]));
      EXPECT_EQ(bits(got.absolute), bits(expected.absolute));
    }
  }
}

}  // namespace
}  // namespace normc::codegen
