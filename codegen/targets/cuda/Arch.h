// NVIDIA architectures as a compiler and a planner see them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "runtime/abi/CudaLimits.h"

namespace normc::codegen::cuda {

/// The same on every device: threads of a warp, registers of a thread, registers of a multiprocessor, and its
/// schedulers, each with a quarter of them. Others are in runtime/abi/CudaLimits.h.
constexpr int64_t kWarp = 32, kMaxRegisters = 255, kRegisters = 64 << 10, kSchedulers = 4;

/// Bytes of a line of the caches, which are fetched from memory in halves. Reads of less are slower.
constexpr int64_t kLineBytes = 128;

/// Shared memory that every multiprocessor from compute capability 8 on has.
constexpr int64_t kLeastShared = 100 << 10;

struct Arch {
  std::string name;             ///< "sm_90"
  int64_t number = 0;           ///< 90
  int64_t accessBytes = 16;     ///< widest load of one thread
  int64_t multiprocessors = 0;  ///< of the usual device; for the number of blocks that fill it
  int64_t threads = 2048;       ///< resident on one multiprocessor
  int64_t blocks = 32;          ///< resident on one multiprocessor
  int64_t sharedBytes = 0;      ///< of one multiprocessor
  int64_t neighbours =
      18;  ///< multiprocessors of a GPC, over which a cluster may lie; of one device some have two fewer
  /// Returns the blocks of so many threads that one multiprocessor has room for.
  int64_t blocksOf(int64_t blockThreads) const { return std::min(blocks, threads / blockThreads); }
  bool clusters() const { return number >= 90; }
  bool dependentLaunches() const { return clusters(); }
};

/// Returns sm_80, sm_90, sm_100: the architectures of a package by default.
llvm::ArrayRef<llvm::StringRef> defaultArchs();

/// Returns any `sm_NN` from sm_80 on that this LLVM knows.
llvm::Expected<Arch> findArch(llvm::StringRef name);
inline bool isArchName(llvm::StringRef name) { return name.starts_with("sm_"); }

}  // namespace normc::codegen::cuda
