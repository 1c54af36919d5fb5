// What a kernel can be compiled for: an instruction set of a CPU, an architecture
// of a GPU. Everything above the compiler (packages, the command line, tuning) knows
// targets by this interface and schedules by their text.
//
// Immutable; any number of threads may use one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/Compile.h"
#include "codegen/Tuning.h"
#include "dsl/Problem.h"

namespace normc::codegen {

/// A schedule worth packing, and the calls it is offered for.
struct Candidate {
  std::string schedule;
  package::Limits limits = {};
};

/// Predicts the time of a schedule of one problem. It is used by one thread at a time, and not after its
/// target.
using Predictor = std::function<double(llvm::StringRef schedule)>;

class Target {
 public:
  virtual ~Target() = default;
  virtual llvm::StringRef name() const = 0;    ///< "x86-64-v4", "sm_90"
  virtual std::string spelling() const { return name().str(); }  ///< what findTarget takes for it: "x86-64-v4:cove"
  virtual llvm::StringRef device() const = 0;  ///< "cpu", "cuda"
  virtual llvm::StringRef generator() const { return "mlir"; }  ///< who writes the loops; as in the manifest
  virtual std::vector<std::string> stages() const = 0;  ///< what emit() can show, in order

  /// One for each strategy that pays, the best first. Empty where the target cannot serve the
  /// problem at all; whyNot() says why.
  virtual std::vector<Candidate> defaults(const Problem&) const = 0;
  virtual std::optional<std::string> whyNot(const Problem&) const { return std::nullopt; }
  /// Beside a schedule that counts on more than every device of the target has, one that does not: for a package to hold
  /// both. Nothing where it counts on no more.
  virtual std::optional<std::string> fallback(const Problem&, llvm::StringRef /*schedule*/) const { return std::nullopt; }
  /// The schedule as this target prints it; errors on its text, not on the problem.
  virtual llvm::Expected<std::string> canonical(llvm::StringRef schedule) const = 0;
  virtual std::optional<std::string> whyIllegal(const Problem&, llvm::StringRef schedule) const = 0;

  /// What a tuner tries for a call, a space for each strategy. Contains the defaults, or has legal points beside them.
  virtual std::vector<KnobSpace> knobs(const Problem&, const Load&) const = 0;
  /// Returns what predicts about how long a legal schedule takes, by traffic, caches and registers. Only the
  /// order counts: it says what to measure first, and never decides. Remembers what schedules of the problem
  /// share.
  virtual Predictor predictor(const Problem&, const Load&) const = 0;
  /// Predicts one schedule.
  double predict(const Problem& problem, llvm::StringRef schedule, const Load& load) const {
    return predictor(problem, load)(schedule);
  }
  /// Which kind of kernel a legal schedule makes, beside its strategy: words, the same for schedules that are one idea with
  /// other numbers. Where few can be measured, each should be another kind.
  virtual std::string family(const Problem&, llvm::StringRef /*schedule*/) const { return {}; }

  virtual llvm::Expected<std::string> emit(const Problem&, llvm::StringRef schedule, llvm::StringRef stage) const = 0;
  virtual llvm::Expected<CompiledKernel> compile(const Problem&, llvm::StringRef schedule, llvm::StringRef symbol) const = 0;
  /// Relocatable code of many kernels as one blob; only where kernels are such code.
  virtual llvm::Expected<std::string> link(llvm::ArrayRef<std::string> objects) const;
};
using TargetPtr = std::shared_ptr<const Target>;

/// "host" is the newest set of this machine's CPU, with the defaults of its core; "x86-64-v4:zen" those of that core, and
/// "x86-64-v4" those of none. An error names the legal ones.
llvm::Expected<TargetPtr> findTarget(llvm::StringRef name);
/// All generators for that set or architecture, the one that makes the defaults first: who races in tuning.
llvm::Expected<std::vector<TargetPtr>> findGenerators(llvm::StringRef name);
/// Those that a user may name, "host" first.
std::vector<std::string> targetNames();

}  // namespace normc::codegen
