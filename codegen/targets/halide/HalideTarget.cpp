#include "codegen/targets/halide/HalideTarget.h"

#include "codegen/lower/Transcendentals.h"
#include "codegen/targets/Unavailable.h"
#include "codegen/targets/cpu/Compile.h"
#include "codegen/targets/cpu/CpuSpace.h"
#include "codegen/targets/cpu/Object.h"
#include "codegen/targets/halide/Serialize.h"
#include "codegen/targets/halide/Streaming.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"

namespace normc::codegen::halide {
namespace {

/// A plan and the context that it lives in.
class Planned {
 public:
  explicit Planned() : context_(dialects(), mlir::MLIRContext::Threading::DISABLED) {
    context_.loadAllAvailableDialects();
    module_ = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context_));
  }
  llvm::Error plan(const Problem& problem, const Schedule& schedule, llvm::StringRef symbol) {
    auto kernel = planKernel(*module_, problem, schedule.strategy, symbol);
    if (!kernel) return kernel.takeError();
    kernel_ = *kernel;
    return llvm::Error::success();
  }
  KernelOp kernel() { return kernel_; }
  std::string text() {
    std::string text;
    llvm::raw_string_ostream(text) << *module_;
    return text;
  }
  std::string request(const Schedule& schedule, const cpu::Isa& isa, llvm::StringRef emit) {
    expandTranscendentals(*module_);
    return requestOf(kernel_, schedule, isa, emit);
  }

 private:
  static mlir::DialectRegistry dialects() {
    mlir::DialectRegistry registry;
    registry.insert<NormDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
    return registry;
  }
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  KernelOp kernel_;
};

class HalideTarget : public Target {
 public:
  HalideTarget(Generator generator, cpu::Isa isa, TargetPtr other)
      : generator_(std::move(generator)), isa_(std::move(isa)), other_(std::move(other)) {}
  llvm::StringRef name() const override { return isa_.name; }
  std::string spelling() const override { return cpu::spelling(isa_); }
  llvm::StringRef device() const override { return "cpu"; }
  llvm::StringRef generator() const override { return "halide"; }
  std::vector<std::string> stages() const override { return {"sweeps", "halide", "stmt", "asm"}; }

  std::vector<Candidate> defaults(const Problem& problem) const override {
    std::vector<Candidate> list = other_->defaults(problem);  // the same limits of rows
    list.resize(std::min<size_t>(list.size(), legalStrategies(problem).size()));
    for (auto [candidate, strategy] : llvm::zip(list, legalStrategies(problem)))
      candidate.schedule = halide::defaultSchedule(problem, isa_, strategy).text();
    return list;
  }
  llvm::Expected<std::string> canonical(llvm::StringRef text) const override {
    auto schedule = parseSchedule(text);
    if (!schedule) return schedule.takeError();
    return schedule->text();
  }
  std::optional<std::string> whyIllegal(const Problem& problem, llvm::StringRef text) const override {
    auto schedule = parseSchedule(text);
    return schedule ? halide::whyIllegal(problem, *schedule, isa_) : llvm::toString(schedule.takeError());
  }

  std::vector<KnobSpace> knobs(const Problem& problem, const Load& load) const override {
    std::vector<KnobSpace> spaces = cpu::knobSpaces(problem, isa_, load);
    spaces.resize(std::min(spaces.size(), legalStrategies(problem).size()));  // those of `kStrategies` come first
    for (auto [space, strategy] : llvm::zip(spaces, legalStrategies(problem))) {
      const Schedule s = halide::defaultSchedule(problem, isa_, strategy);
      const std::map<llvm::StringRef, int64_t> own{
          {"vector", s.vector}, {"rows", s.rows},     {"unroll", s.unroll},         {"tile", s.tile},
          {"grain", s.grain},   {"stream", s.stream}, {"scalar_tail", s.scalarTail}};
      llvm::erase_if(space.knobs, [&](const auto& knob) { return !own.contains(knob.name); });
      for (auto& knob : space.knobs) {
        if (knob.values.size() == 1) knob.values.clear();  // without influence there, and so here
        if (!llvm::is_contained(knob.values, own.at(knob.name))) knob.values.push_back(own.at(knob.name));
        llvm::sort(knob.values);
      }
      space.knobs.push_back({"columns", columnsFor(problem, s)});
    }
    return spaces;
  }
  /// Only a stream that adds to sums per feature looks at them, and none is narrower than its features.
  static std::vector<int64_t> columnsFor(const Problem& problem, const Schedule& s) {
    std::vector<int64_t> values{s.columns};
    const bool sums = s.strategy == Strategy::Streamed && problem.spec->perFeature() && problem.entry != Entry::Infer;
    const int64_t features = sums ? problem.features.value_or(4 * s.columns) : 0;
    if (features > s.columns / 2) values.insert(values.begin(), s.columns / 2);
    if (features > s.columns) values.push_back(2 * s.columns);
    return values;
  }
  Predictor predictor(const Problem& problem, const Load& load) const override {
    return [model = cpu::Predictor(problem, isa_, load)](llvm::StringRef text) mutable {
      return model(llvm::cantFail(parseSchedule(text)).cut());
    };
  }

  llvm::Expected<std::string> emit(const Problem& problem, llvm::StringRef text,
                                   llvm::StringRef stage) const override {
    if (!llvm::is_contained(stages(), stage))
      return llvm::createStringError("no stage '" + stage.str() + "'; legal: " + llvm::join(stages(), ", "));
    Planned planned;
    auto schedule = legal(problem, text);
    if (!schedule) return schedule.takeError();
    if (auto error = planned.plan(problem, *schedule, "kernel")) return error;
    if (stage == "sweeps") return planned.text();
    if (stage == "asm") return code(problem, planned, *schedule, cpu::Emit::Assembly);
    auto answer = asked(problem, planned.request(*schedule, isa_, stage));
    if (!answer) return answer.takeError();
    return std::move(answer->output);
  }

  llvm::Expected<CompiledKernel> compile(const Problem& problem, llvm::StringRef text,
                                         llvm::StringRef symbol) const override {
    Planned planned;
    auto schedule = legal(problem, text);
    if (!schedule) return schedule.takeError();
    if (auto error = planned.plan(problem, *schedule, symbol)) return error;
    CompiledKernel kernel;
    kernel.manifest = cpu::kernelManifest(problem, schedule->cut(), isa_, planned.kernel());
    kernel.manifest.generator = generator().str();
    kernel.manifest.schedule = schedule->text();
    auto object = code(problem, planned, *schedule, cpu::Emit::Object);
    if (!object) return object.takeError();
    kernel.object = std::move(*object);
    return kernel;
  }
  llvm::Expected<std::string> link(llvm::ArrayRef<std::string> objects) const override {
    return cpu::linkShared(objects, isa_);
  }

 private:
  llvm::Expected<Schedule> legal(const Problem& problem, llvm::StringRef text) const {
    auto schedule = parseSchedule(text);
    if (!schedule) return schedule;
    if (auto reason = halide::whyIllegal(problem, *schedule, isa_))
      return llvm::createStringError(problem.text() + " for " + isa_.name.str() + ": " + *reason);
    return schedule;
  }
  /// Halide's own code, or where outputs go past the caches that of its bitcode.
  llvm::Expected<std::string> code(const Problem& problem, Planned& planned, const Schedule& schedule,
                                   cpu::Emit kind) const {
    const llvm::StringRef own = kind == cpu::Emit::Object ? "object" : "asm";
    auto answer = asked(problem, planned.request(schedule, isa_, schedule.stream ? "bitcode" : own));
    if (!answer) return answer.takeError();
    if (!schedule.stream) return std::move(answer->output);
    return machineCode(answer->output, isa_, kind);
  }
  llvm::Expected<Answer> asked(const Problem& problem, const std::string& request) const {
    auto answer = ask(generator_, request);
    if (answer) return answer;
    return prefixed(problem.text() + " for " + isa_.name.str() + ": ", answer.takeError());
  }

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
