// Planning: from a Problem to sweeps. A pure function of problem and strategy.
//
// Where the statistic is per row or per segment the kernel is one apply phase
// whose slabs hold a whole statistic. Where it is per feature there are two
// strategies:
//
//   streamed   statistics in chunks of rows -> combine -> apply [-> finish]
//   resident   one phase, each task owns whole columns (features-last: a tile of
//              features; channels-first: a channel), every statistic is complete
//              inside the slab and memory is read once
//
// A row of very many features may be shared by tasks too: `split`, statistics in chunks of features -> combine -> apply.
// It is for calls of few rows, on a CPU; elsewhere a row has threads enough.
//
// PowerNorm needs no statistic of this batch before its outputs, so its streamed
// form has no statistics phase after warmup: apply accumulates what finish folds.
#pragma once

#include <optional>
#include <string>

#include "codegen/dialect/Norm.h"
#include "dsl/Problem.h"
#include "llvm/Support/Error.h"

namespace normc::codegen {

enum class Strategy { Streamed, Resident, Split };
/// Those that every target has.
constexpr Strategy kStrategies[] = {Strategy::Streamed, Strategy::Resident};
llvm::StringRef name(Strategy);

/// Why this strategy cannot serve the problem; nothing where it can.
std::optional<std::string> whyIllegal(const Problem&, Strategy);

/// Returns why a target that does not go through channels in the order of memory cannot serve the problem so;
/// nothing where every target can.
std::optional<std::string> whyIllegalOnSomeTarget(const Problem&, Strategy);

/// Of `kStrategies` those that serve it on every target, the default first.
llvm::SmallVector<Strategy, 2> legalStrategies(const Problem&);

/// Appends a verified `norm.kernel` to the module. `vector`: lanes of vectors of which a probe may add up a whole row; 0:
/// there are none such.
llvm::Expected<KernelOp> planKernel(mlir::ModuleOp, const Problem&, Strategy, llvm::StringRef symbol, int64_t vector = 0);

/// Plans a kernel in a context of its own, which ends when `look` returns.
llvm::Error withPlan(const Problem&, Strategy, llvm::function_ref<void(KernelOp)> look);

/// X-sized transfers of a kernel, read off the IR. `warmup` counts the phases and
/// sweeps that only run then as well. `keeps` says of which slabs a tensor is read once, however many of
/// their sweeps ask for it; by default of all that are planned so (`resident`).
struct Traffic {
  int64_t reads = 0, writes = 0;
  int64_t total() const { return reads + writes; }
};
Traffic trafficOf(KernelOp, bool warmup = false, llvm::function_ref<bool(SlabOp)> keeps = nullptr);

/// The X-sized transfers between which the caches decide, after warmup.
struct TrafficBounds {
  Traffic kept;   ///< where the slabs that are planned so stay on chip between their sweeps
  Traffic apart;  ///< where no slab does
};
TrafficBounds trafficBoundsOf(KernelOp);

}  // namespace normc::codegen
