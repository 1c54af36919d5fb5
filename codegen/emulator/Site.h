// The interface between translated kernels and the emulator's functions: numbered instructions, special
// registers, the layout of shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/CudaLimits.h"

namespace normc::emulator {

/// The threads that a strong access orders: those of a block, of a cluster, or all.
enum class Scope : uint8_t { Block, Cluster, Device };

/// An instruction that accesses memory or waits.
struct Site {
  enum Flag : uint8_t {
    Read = 1,
    Write = 2,
    Strong = 4,  ///< atomic or volatile: may be concurrent with others of its kind
    Acquire = 8,
    Release = 16,
    NonCoherent = 32,  ///< reads through a cache that is not coherent with this launch's writes
    Copied = 64,       ///< by cp.async or a bulk copy
  };
  uint32_t bytes = 0;  ///< of one access; 0: an argument of the call
  uint32_t used = 0;   ///< of these, the first ones; the kernel ignores the others. 0: all
  uint32_t align = 1;
  uint8_t space = 0;  ///< the pointer's address space
  Scope scope = Scope::Device;
  uint8_t flags = 0;
  uint8_t width = 0;  ///< log2 of the bytes that one access of the device moves
  std::string text;   ///< as in the PTX, with its line
};

/// State spaces of PTX, by the numbers of LLVM's address spaces.
struct Space {
  enum : uint8_t { Generic = 0, Global = 1, Shared = 3, Constant = 4, Local = 5, Distributed = 7 };
};

/// Special registers, in the order of Thread::sreg. Registers with .x, .y and .z have three entries.
enum Sreg : uint32_t {
  Tid = 0,
  Ntid = 3,
  Ctaid = 6,
  Nctaid = 9,
  Clusterid = 12,
  Nclusterid = 15,
  ClusterCtaid = 18,
  ClusterNctaid = 21,
  ClusterCtarank = 24,
  ClusterNctarank,
  Laneid,
  Warpid,
  Nwarpid,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  DynamicSmemSize,
  TotalSmemSize,
};
inline constexpr uint32_t kSregs = TotalSmemSize + 1;

/// The lane that a shuffle reads.
struct ShuffleMode {
  enum : uint32_t { Up, Down, Butterfly, Index };
};

/// How lanes combine their values (redux.sync): an operation, and flags.
struct Reduction {
  enum : uint32_t { Add, Min, Max, Umin, Umax, And, Or, Xor, Fmin, Fmax, Operation = 15, Abs = 16, Nan = 32 };
};

/// A variable in shared memory.
struct SharedVariable {
  std::string name;
  uint64_t offset, bytes;
};

using Code = void (*)(struct Thread*, const uint64_t* words);

/// An entry function.
struct Entry {
  std::string name;
  Code code = nullptr;
  uint32_t parameters = 0;
  std::vector<SharedVariable> shared;  ///< by offset
  uint64_t staticBytes = 0;            ///< of shared memory, by the count of a device
  uint64_t dynamicOffset = 0;          ///< offset of dynamic shared memory
  uint64_t stackBytes = 0;             ///< of local variables
  uint32_t maxThreads = limits::kBlockThreads;
  std::array<uint32_t, 3> exactThreads{};  ///< zero: any
  std::array<uint32_t, 3> cluster{};       ///< zero: any
};

}  // namespace normc::emulator
