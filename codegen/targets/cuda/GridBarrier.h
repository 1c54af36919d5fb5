// The grid barrier of blocks that share columns or a line (`grid`, Schedule.h), and its workspace.
//
//   arrivals   i64 [task][block]     how many barriers each block has arrived at; zero when the kernel begins
//   parts      the part of a sum of each block: of columns [sum][block][feature], every place written once a
//   launch;
//              of lines [task][step, one of two in turn][sum][team][block]
//
// Each phase over a grid has both for itself: its blocks count from one, and it has other tasks.
//
// A block counts its barriers in its own word of `arrivals` and waits until the words of the others are as
// large, a thread for each. No two blocks write a word, so plain loads and stores with an order suffice.
// Words only grow, so a block may wait later than it arrives, and one that does not need the others never
// waits. A phase that has a block even for no rows (leastBlocksAttrName) has no words then, and its blocks do
// not meet. All blocks are resident at once (runtime/abi/cuda.h). SumOverGrid.cpp writes and reads `parts`.
//
// The runtime clears an operand whose access is `zeroed`
// before every launch, in the order of its stream, so a call
// does not depend on the one before.
#pragma once

#include "codegen/Pass.h"
#include "codegen/lower/AccessLowering.h"
#include "codegen/targets/cuda/Schedule.h"

namespace normc::codegen::cuda {

std::string barrierCountsName(PhaseOp);
std::string partsName(PhaseOp);

/// norm-grid-barrier: adds both for each phase that the schedule spreads over a grid.
PassPtr addGridBarrier(const Schedule&);

/// True if blocks write the tensor for each other.
bool belongsToGridBarrier(TensorOp);

/// The barrier in the code of one thread. Each call needs a barrier of the block's threads: before `arrive`,
/// after `wait`.
class GridBarrier {
 public:
  /// A barrier of `blocks` blocks of `threads` threads; this is thread `thread` of block `rank`.
  GridBarrier(Loops&, AccessLowering&, int64_t blocks, int64_t threads, mlir::Value rank, mlir::Value thread);
  /// Orders all accesses of the block before those that other blocks make after their wait.
  void arrive();
  /// Returns when all blocks have arrived at the last barrier that this one has arrived at.
  void wait();

 private:
  mlir::Value wordOf(mlir::Value block);

  Loops& l_;
  AccessLowering& f_;
  int64_t blocks_, threads_;
  mlir::Value rank_, thread_;
  mlir::Value hasUnits_;  ///< false in a task that meets nowhere; null: there is no such task
  mlir::Value count_;     ///< the address of the number of arrivals; LLVM keeps it in a register
};

}  // namespace normc::codegen::cuda
