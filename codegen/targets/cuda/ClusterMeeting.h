// The exchange of parts of sums between the blocks of a cluster.
//
// In a meeting threads store parts into the shared memory of all blocks with asynchronous stores, whose bytes
// an mbarrier of the receiving block counts. A block reads when all of its parts have come. A cluster barrier
// would wait for the other stores of each thread, and empty the first-level cache; a meeting does neither.
//
// Two mbarriers and two buffers take turns. A warp sends its part of meeting m + 1 after it has read the
// parts of meeting m; a block that sends in meeting m + 2 has received all parts of meeting m + 1, so what it
// writes over has been read. A block has received all that was sent to it when its last meeting ends, so
// blocks may exit in any order.
#pragma once

#include "codegen/targets/cuda/KernelThread.h"

namespace normc::codegen::cuda {

class ClusterMeeting {
 public:
  /// Emits the initialisation of the mbarriers. All threads have to arrive at a cluster barrier afterwards,
  /// and to wait for it before the first meeting, or in it.
  explicit ClusterMeeting(KernelThread&);
  /// Makes the first meeting wait for that barrier: what a thread has loaded until then is under way
  /// meanwhile.
  void waitInTheFirst() { waits_ = true; }

  /// Returns shared memory that other blocks write.
  mlir::Value memory(int64_t elements, mlir::Type);

  /// Begins a meeting in which each block receives so many bytes. Every thread of the cluster takes part.
  void begin(int64_t bytes);
  /// Returns 0 or 1, in turn: which of its two buffers a sum writes.
  mlir::Value turn() const { return turn_; }
  /// Returns the address of a variable in the shared memory of block `rank`, and of its mbarrier.
  struct There {
    mlir::Value memory, mbarrier;
  };
  There in(mlir::Value memory, mlir::Value rank);
  /// Sends a number, or a vector, to an address in that memory.
  void send(mlir::Value part, mlir::Value to, const There&);
  /// Ends the meeting: this block has all its parts.
  void end();

 private:
  KernelThread& k_;
  Loops& l_;
  mlir::Value mbarriers_;
  mlir::Value count_;  ///< memory of the number of meetings that have begun
  mlir::Value turn_, parity_, mbarrier_;
  bool waits_ = false;
  int64_t buffers_ = 0;
};

}  // namespace normc::codegen::cuda
