// What a kernel can be compiled for: an instruction set of a CPU, an architecture of a GPU. Everything above
// the compiler (packages, the command line, tuning) knows targets by this interface.
//
// A Target is immutable, and any number of threads may use one. `bind` gives what it knows of one problem
// (BoundTarget), and that reads the text of a schedule once (BoundSchedule). Schedules are text outside of
// these.
#pragma once

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

/// A schedule of one problem for one target. It keeps its BoundTarget alive. Schedules of one BoundTarget are
/// used by one thread at a time, since they share what it remembers.
class BoundSchedule {
 public:
  virtual ~BoundSchedule() = default;
  /// Returns the canonical text.
  virtual std::string text() const = 0;
  /// Returns why the schedule cannot be compiled for the problem; nothing where it can.
  virtual std::optional<std::string> whyIllegal() const = 0;

  // The functions below are for legal schedules; emit and compile return an error for others.

  /// Returns about how long a call takes, by traffic, caches and registers. Only the order counts: it says
  /// what to measure first, and never decides.
  virtual double predict(const Workload&) const = 0;
  /// Returns words for the kind of kernel that the schedule makes, beside its strategy: the same for
  /// schedules that differ in numbers alone. Where few schedules can be measured, each should be of another
  /// kind.
  virtual std::string family() const = 0;
  /// Returns a schedule that every device of the target can run, if this one counts on more: for a package to
  /// hold both.
  virtual std::optional<std::string> fallback() const = 0;
  virtual llvm::Expected<std::string> emit(llvm::StringRef stage) const = 0;
  virtual llvm::Expected<CompiledKernel> compile(llvm::StringRef symbol) const = 0;
};

/// A target and one problem. It remembers what schedules of the problem share, so one thread uses it at a
/// time.
class BoundTarget {
 public:
  virtual ~BoundTarget() = default;
  /// Returns one schedule for each strategy that pays, the best first; none where the target cannot serve the
  /// problem at all.
  virtual std::vector<Candidate> defaults() = 0;
  /// Returns why the target cannot serve the problem at all; nothing where it can.
  virtual std::optional<std::string> whyIllegal() { return std::nullopt; }
  /// Reads a schedule. An error is one of its text: the schedule may be illegal for the problem.
  virtual llvm::Expected<std::unique_ptr<BoundSchedule>> parse(llvm::StringRef schedule) = 0;
  /// Returns what a tuner tries for a call, a space for each strategy. The spaces contain the defaults, or
  /// have legal points beside them.
  virtual std::vector<KnobSpace> knobs(const Workload&) = 0;

  /// Returns why a text is no legal schedule for the problem; nothing where it is one.
  std::optional<std::string> whyIllegal(llvm::StringRef schedule);
};

class Target {
 public:
  virtual ~Target() = default;
  virtual llvm::StringRef name() const = 0;  ///< "x86-64-v4", "sm_90"
  /// Returns what findTarget takes for the target: "x86-64-v4:cove".
  virtual std::string spelling() const { return name().str(); }
  virtual llvm::StringRef device() const = 0;                   ///< "cpu", "cuda"
  virtual llvm::StringRef generator() const { return "mlir"; }  ///< what writes the loops; as in the manifest
  virtual std::vector<std::string> stages() const = 0;  ///< what BoundSchedule::emit can show, in order

  virtual std::shared_ptr<BoundTarget> bind(const Problem&) const = 0;
  /// Reads one schedule of one problem.
  llvm::Expected<std::unique_ptr<BoundSchedule>> bind(const Problem& problem,
                                                      llvm::StringRef schedule) const {
    return bind(problem)->parse(schedule);
  }
  /// Relocatable code of many kernels as one blob; only where kernels are such code.
  virtual llvm::Expected<std::string> link(llvm::ArrayRef<std::string> objects) const;
};
using TargetPtr = std::shared_ptr<const Target>;

/// "host" is the newest set of this machine's CPU, with the defaults of its core; "x86-64-v4:zen" those of
/// that core, and "x86-64-v4" those of none. An error names the legal ones.
llvm::Expected<TargetPtr> findTarget(llvm::StringRef name);
/// Returns all generators for that set or architecture, the one that makes the defaults first. Tuning races
/// them.
llvm::Expected<std::vector<TargetPtr>> findGenerators(llvm::StringRef name);
/// Those that a user may name, "host" first.
std::vector<std::string> targetNames();

}  // namespace normc::codegen
