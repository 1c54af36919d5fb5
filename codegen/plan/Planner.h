// Planning: from a Problem to the sweeps of a kernel, as a pure function of problem and strategy.
//
// If statistics are per row or per segment the kernel is one apply phase whose slabs hold a whole statistic
// each. If they are per feature there are two strategies:
//
//   streamed   statistics in chunks of rows -> combine -> apply [-> finish]
//   resident   one phase, each task owns whole columns (features-last: a tile of
//              features; channels-first: a channel), every statistic is complete
//              inside the slab and memory is read once
//
// Tasks may also share rows of very many features (`split`): statistics in chunks of features -> combine ->
// apply. It is for calls of few rows, on a CPU. A GPU has enough threads in a row.
//
// PowerNorm needs no statistic of this batch before its outputs, so its streamed kernel has no statistics
// phase after warmup: apply accumulates what finish folds.
#pragma once

#include <optional>
#include <string>

#include "codegen/dialect/Norm.h"
#include "dsl/Problem.h"
#include "llvm/Support/Error.h"

namespace normc::codegen {

/// The strategies that every target has.
constexpr Strategy kStrategies[] = {Strategy::Streamed, Strategy::Resident};
inline llvm::StringRef name(Strategy strategy) { return stringifyStrategy(strategy); }

/// Returns why this strategy cannot serve the problem; nothing if it can.
std::optional<std::string> whyIllegal(const Problem&, Strategy);

/// Returns why no strategy can serve the problem; nothing if one can.
std::optional<std::string> whyNoStrategy(const Problem&);

/// Returns why MLIR for a CPU alone serves the problem; nothing where other targets do.
std::optional<std::string> whyOnCpuAlone(const Problem&);

/// Returns why MLIR alone serves the problem; nothing where Halide may, if `whyOnCpuAlone` has no reason.
std::optional<std::string> whyInMlirAlone(const Problem&);

/// Returns why a target that does not go through channels in the order of memory cannot serve the problem so;
/// nothing where every target can.
std::optional<std::string> whyIllegalOnSomeTarget(const Problem&, Strategy);

/// Returns the members of `kStrategies` that serve the problem on every target, the default first.
llvm::SmallVector<Strategy, 2> legalStrategies(const Problem&);

/// Appends a verified `norm.kernel` to the module. `vector`: the lanes of the vectors with which a probe may
/// sum a whole row; 0: a probe never does.
llvm::Expected<KernelOp> planKernel(mlir::ModuleOp, const Problem&, Strategy, llvm::StringRef symbol,
                                    int64_t vector = 0);

/// Plans a kernel in a context of its own, which is destroyed when `look` returns.
llvm::Error withPlan(const Problem&, Strategy, llvm::function_ref<void(KernelOp)> look);

/// Returns the X-sized transfers of a kernel, computed from the IR. `warmup` counts also the phases and
/// sweeps that run only then. `keeps` is true for slabs that read a tensor once, however many of their sweeps
/// use it; by default it is true for slabs planned as `resident`.
struct Traffic {
  int64_t reads = 0, writes = 0;
  int64_t total() const { return reads + writes; }
};
Traffic trafficOf(KernelOp, bool warmup = false, llvm::function_ref<bool(SlabOp)> keeps = nullptr);

/// The X-sized transfers after warmup, with and without help of the caches.
struct TrafficBounds {
  Traffic kept;   ///< if resident slabs stay on chip between their sweeps
  Traffic apart;  ///< if no slab does
};
TrafficBounds trafficBoundsOf(KernelOp);

}  // namespace normc::codegen
