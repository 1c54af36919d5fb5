// A target of the compiler: an instruction set of a CPU, or an architecture of a GPU. All code above the
// compiler (packages, the command line, tuning) uses targets through this interface.
//
// A Target is immutable and thread-safe. `bind` gives the state for one problem (BoundTarget), which parses
// the text of a schedule once (BoundSchedule). Outside of these classes schedules are text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/Compile.h"
#include "codegen/Tuning.h"
#include "dsl/Problem.h"

namespace normc::codegen {

/// A schedule that is worth packing, and the calls that it is offered for.
struct Candidate {
  std::string schedule;
  package::Limits limits = {};
};

/// A schedule of one problem for one target. It keeps its BoundTarget alive. Schedules of one BoundTarget
/// share a cache, so one thread at a time may use them.
class BoundSchedule {
 public:
  virtual ~BoundSchedule() = default;
  /// Returns the canonical text.
  virtual std::string text() const = 0;
  /// Returns why the schedule cannot be compiled for the problem; nothing if it can.
  virtual std::optional<std::string> whyIllegal() const = 0;

  // The functions below require a legal schedule; emit and compile return an error for an illegal one.

  /// Returns an estimate of the time of a call, by traffic, caches and registers. Only the order of estimates
  /// matters: it decides what to measure first, and never the result.
  virtual double predict(const Workload&) const = 0;
  /// Returns the kind of kernel in addition to its strategy: equal for schedules that differ only in numbers.
  /// If only few schedules can be measured, they should be of different kinds.
  virtual std::string family() const = 0;
  /// Returns a schedule that every device of the target can run, if this one needs special capabilities; a
  /// package then holds both.
  virtual std::optional<std::string> fallback() const = 0;
  virtual llvm::Expected<std::string> emit(llvm::StringRef stage) const = 0;
  /// Runs the passes of MLIR and returns all of them in order, those named in `shown` with a text.
  virtual llvm::Expected<std::vector<PassText>> passes(llvm::ArrayRef<std::string> shown) const = 0;
  virtual llvm::Expected<CompiledKernel> compile(llvm::StringRef symbol, const CubinOptions& = {}) const = 0;
};

/// A target and one problem. It caches what schedules of the problem share, so one thread at a time may use
/// it.
class BoundTarget {
 public:
  virtual ~BoundTarget() = default;
  /// Returns one schedule for each worthwhile strategy, the best first; none if the target does not support
  /// the problem.
  virtual std::vector<Candidate> defaults() = 0;
  /// Returns why the target does not support the problem; nothing if it does.
  virtual std::optional<std::string> whyIllegal() { return std::nullopt; }
  /// Parses a schedule. An error is a fault of the text; a parsed schedule may be illegal for the problem.
  virtual llvm::Expected<std::unique_ptr<BoundSchedule>> parse(llvm::StringRef schedule) = 0;
  /// Returns the search spaces for a call, one for each strategy. They contain the defaults, or legal points
  /// next to them.
  virtual std::vector<KnobSpace> knobs(const Workload&) = 0;
  /// Calls `visit` with each legal schedule of a space and the places of its values, those of the last knob
  /// the fastest. No text is made of the others, of which there may be a million.
  virtual void forEachLegal(const KnobSpace&,
                            llvm::function_ref<void(const BoundSchedule&, llvm::ArrayRef<int>)> visit) = 0;

  /// Returns why a text is not a legal schedule for the problem; nothing if it is legal.
  std::optional<std::string> whyIllegal(llvm::StringRef schedule);
};

class Target {
 public:
  virtual ~Target() = default;
  virtual llvm::StringRef name() const = 0;  ///< "x86-64-v4", "sm_90"
  /// Returns the name for findTarget: "x86-64-v4:cove".
  virtual std::string spelling() const { return name().str(); }
  /// Returns the core whose defaults it has: "cove"; empty: none.
  virtual llvm::StringRef core() const { return ""; }
  virtual llvm::StringRef device() const = 0;  ///< "cpu", "cuda"
  virtual llvm::StringRef generator() const {
    return "mlir";
  }  ///< the part that generates loops; as in the manifest
  virtual std::vector<std::string> stages() const = 0;  ///< the stages for BoundSchedule::emit, in order

  virtual std::shared_ptr<BoundTarget> bind(const Problem&) const = 0;
  /// Binds a problem and parses one schedule.
  llvm::Expected<std::unique_ptr<BoundSchedule>> bind(const Problem& problem,
                                                      llvm::StringRef schedule) const {
    return bind(problem)->parse(schedule);
  }
  /// Links the relocatable code of several kernels into one blob; only for targets with relocatable code.
  virtual llvm::Expected<std::string> link(llvm::ArrayRef<std::string> objects) const;
};
using TargetPtr = std::shared_ptr<const Target>;

/// Returns the target of a name. "host" is the newest set of this machine's CPU, with the defaults of its
/// core; "x86-64-v4:zen4" has the defaults of that core, and "x86-64-v4" has no core's defaults. An error has
/// the legal names.
llvm::Expected<TargetPtr> findTarget(llvm::StringRef name);
/// Returns all generators for a set or architecture, the generator of the defaults first. Tuning compares
/// them.
llvm::Expected<std::vector<TargetPtr>> findGenerators(llvm::StringRef name);
/// Returns the names for users, "host" first.
std::vector<std::string> targetNames();

}  // namespace normc::codegen
