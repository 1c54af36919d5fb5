#include "codegen/targets/halide/HalideTarget.h"

#include "codegen/Compilation.h"
#include "codegen/lower/Expand.h"
#include "codegen/targets/TypedTarget.h"
#include "codegen/targets/Unavailable.h"
#include "codegen/targets/cpu/Compile.h"
#include "codegen/targets/cpu/CpuSpace.h"
#include "codegen/targets/cpu/Link.h"
#include "codegen/targets/cpu/Object.h"
#include "codegen/targets/halide/Serialize.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace normc::codegen::halide {
namespace {

constexpr char kGenerator[] = "halide";

/// The plan of a kernel, and the request that the generator reads.
class HalideCompilation : public Compilation {
 public:
  explicit HalideCompilation(const Problem& problem) : Compilation(problem, nullptr) {}
  using Compilation::plan;
  llvm::Error expand() { return run("expanding", expandRsqrt(), expandLog(), expandExp(), expandAbs()); }
  llvm::Expected<std::string> request(const Schedule& schedule, const cpu::Isa& isa, llvm::StringRef emit) {
    if (auto error = expand()) return error;
    return requestOf(kernel_, schedule, isa, emit);
  }
};

std::vector<std::string> stagesOfHalide() { return {"sweeps", "halide", "stmt", "asm"}; }

class BoundHalide : public TypedTarget<BoundHalide, Schedule, parseSchedule> {
 public:
  BoundHalide(const Problem& problem, const cpu::Isa& isa, const Generator& generator,
              std::shared_ptr<BoundTarget> other)
      : problem_(problem),
        isa_(isa),
        generator_(generator),
        other_(std::move(other)),
        predictor_(problem, isa) {}

  std::vector<Candidate> defaults() override {
    if (whyIllegal()) return {};
    std::vector<Candidate> list = other_->defaults();  // the same limits of rows
    list.resize(std::min<size_t>(list.size(), legalStrategies(problem_).size()));
    for (auto [candidate, strategy] : llvm::zip(list, legalStrategies(problem_)))
      candidate.schedule = halide::defaultSchedule(problem_, isa_, strategy).text();
    return list;
  }
  std::vector<KnobSpace> knobs(const Workload& workload) override {
    if (whyIllegal()) return {};
    std::vector<KnobSpace> spaces = cpu::knobSpaces(problem_, isa_, workload);
    spaces.resize(
        std::min(spaces.size(), legalStrategies(problem_).size()));  // those of `kStrategies` come first
    for (auto [space, strategy] : llvm::zip(spaces, legalStrategies(problem_))) {
      const Schedule s = halide::defaultSchedule(problem_, isa_, strategy);
      const std::map<llvm::StringRef, int64_t> own{{"vector", s.vector}, {"rows", s.rows},
                                                   {"unroll", s.unroll}, {"tile", s.tile},
                                                   {"grain", s.grain},   {"scalar_tail", s.scalarTail}};
      llvm::erase_if(space.knobs, [&](const auto& knob) { return !own.contains(knob.name); });
      for (auto& knob : space.knobs) {
        if (knob.values.size() == 1) knob.values.clear();  // without influence there, and so here
        if (!llvm::is_contained(knob.values, own.at(knob.name))) knob.values.push_back(own.at(knob.name));
        llvm::sort(knob.values);
      }
      space.knobs.push_back({"columns", columnsFor(s)});
    }
    return spaces;
  }

  using BoundTarget::whyIllegal;
  std::optional<std::string> whyIllegal() override { return halide::whyIllegal(problem_); }
  std::optional<std::string> whyIllegal(const Schedule& s) const {
    return halide::whyIllegal(problem_, s, isa_);
  }
  double predict(const Schedule& s, const Workload& workload) { return predictor_(s.cut(), workload); }
  llvm::Expected<std::string> emit(const Schedule& s, llvm::StringRef stage) const {
    if (!llvm::is_contained(stagesOfHalide(), stage))
      return llvm::createStringError("no stage '" + stage.str() +
                                     "'; legal: " + llvm::join(stagesOfHalide(), ", "));
    HalideCompilation c(problem_);
    if (auto error = plan(c, s, "kernel")) return error;
    if (stage == "sweeps") return c.text();
    if (stage == "asm") return code(c, s, cpu::Emit::Assembly);
    return asked(c.request(s, isa_, stage));
  }
  llvm::Expected<std::vector<PassText>> passes(const Schedule& s, llvm::ArrayRef<std::string> shown) const {
    HalideCompilation c(problem_);
    c.show(shown);
    if (auto error = plan(c, s, "kernel")) return error;
    if (auto error = c.expand()) return error;
    return c.passes();
  }
  llvm::Expected<CompiledKernel> compile(const Schedule& s, llvm::StringRef symbol,
                                         const CubinOptions&) const {
    HalideCompilation c(problem_);
    if (auto error = plan(c, s, symbol)) return error;
    CompiledKernel kernel;
    kernel.manifest = cpu::kernelManifest(problem_, s.cut(), isa_, c.kernel());
    kernel.manifest.generator = kGenerator;
    kernel.manifest.schedule = s.text();
    auto object = code(c, s, cpu::Emit::Object);
    if (!object) return object.takeError();
    kernel.object = std::move(*object);
    return kernel;
  }

 private:
  /// Only a stream that adds to sums per feature looks at them, and none is narrower than its features.
  std::vector<int64_t> columnsFor(const Schedule& s) const {
    std::vector<int64_t> values{s.columns};
    const bool sums =
        s.strategy == Strategy::Streamed && problem_.spec->perFeature() && !cpu::isMap(problem_);
    const int64_t features = sums ? problem_.features.value_or(4 * s.columns) : 0;
    if (features > s.columns / 2) values.insert(values.begin(), s.columns / 2);
    if (features > s.columns) values.push_back(2 * s.columns);
    return values;
  }
  llvm::Error plan(HalideCompilation& c, const Schedule& s, llvm::StringRef symbol) const {
    if (auto reason = whyIllegal(s)) return llvm::createStringError(what() + *reason);
    return c.plan(s.strategy, symbol);
  }
  /// Returns the object or the assembly that Halide makes.
  llvm::Expected<std::string> code(HalideCompilation& c, const Schedule& s, cpu::Emit kind) const {
    return asked(c.request(s, isa_, kind == cpu::Emit::Object ? "object" : "asm"));
  }
  llvm::Expected<std::string> asked(llvm::Expected<std::string> request) const {
    if (!request) return request;
    auto answer = ask(generator_, *request);
    if (!answer) return prefixed(what(), answer.takeError());
    return std::move(answer->output);
  }
  /// Returns what an error begins with.
  std::string what() const { return problem_.text() + " for " + isa_.name.str() + ": "; }

  Problem problem_;
  cpu::Isa isa_;
  Generator generator_;
  std::shared_ptr<BoundTarget> other_;
  cpu::Predictor predictor_;
};

class HalideTarget : public Target {
 public:
  HalideTarget(Generator generator, cpu::Isa isa, TargetPtr other)
      : generator_(std::move(generator)), isa_(std::move(isa)), other_(std::move(other)) {}
  llvm::StringRef name() const override { return isa_.name; }
  std::string spelling() const override { return cpu::spelling(isa_); }
  llvm::StringRef core() const override { return other_->core(); }
  llvm::StringRef device() const override { return "cpu"; }
  llvm::StringRef generator() const override { return kGenerator; }
  std::vector<std::string> stages() const override { return stagesOfHalide(); }
  using Target::bind;
  std::shared_ptr<BoundTarget> bind(const Problem& problem) const override {
    return std::make_shared<BoundHalide>(problem, isa_, generator_, other_->bind(problem));
  }
  llvm::Expected<std::string> link(llvm::ArrayRef<std::string> objects) const override {
    return cpu::linkShared(objects, isa_);
  }

 private:
  Generator generator_;
  cpu::Isa isa_;
  TargetPtr other_;
};

}  // namespace

llvm::Expected<TargetPtr> targetWith(Generator generator, llvm::StringRef name) {
  if (name.starts_with("sm_"))
    return llvm::createStringError("the Halide generator makes kernels for CPUs; " + name.str() +
                                   " is for --generator mlir");
  auto isa = cpu::findIsa(name);
  if (!isa) return isa.takeError();
  auto other = codegen::findTarget(name);
  if (!other) return other.takeError();
  return std::make_shared<HalideTarget>(std::move(generator), std::move(*isa), std::move(*other));
}

llvm::Expected<TargetPtr> findTarget(llvm::StringRef name) {
  auto generator = findGenerator();
  if (!generator) return generator.takeError();
  return targetWith(std::move(*generator), name);
}

}  // namespace normc::codegen::halide
