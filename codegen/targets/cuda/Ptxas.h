// The assembler of the CUDA toolkit: PTX to machine code, and the resources that it reports.
#pragma once

#include <map>
#include <string>

#include "codegen/targets/cuda/Arch.h"

namespace normc::codegen::cuda {

/// The resources that one entry function takes.
struct Resources {
  int64_t registers = 0;    ///< of a thread
  int64_t sharedBytes = 0;  ///< static, of a block
  int64_t spillBytes = 0;   ///< stored and loaded: registers that did not suffice
  int64_t stackBytes = 0;   ///< local memory of a thread
  int64_t barriers = 0;
};

struct Assembled {
  std::string cubin;
  std::map<std::string, Resources> resources;  ///< by entry
};

/// The path of ptxas: on the PATH, or where the toolkit is installed by default; else empty.
std::string findPtxas();

/// Errors: no ptxas, or what it says (an architecture that it is too old for).
llvm::Expected<Assembled> assemble(llvm::StringRef ptx, const Arch&);

/// Machine code as text, by nvdisasm.
llvm::Expected<std::string> disassemble(llvm::StringRef cubin);

/// Blocks of so many threads, with so many bytes of dynamic shared memory, that one multiprocessor holds at
/// once.
int64_t residentBlocks(const Arch&, int64_t threads, int64_t dynamicBytes, const Resources&);

/// Whole clusters that the multiprocessors of one GPC hold at once, if each holds so many blocks.
int64_t residentClusters(const Arch&, int64_t cluster, int64_t blocks);

}  // namespace normc::codegen::cuda
