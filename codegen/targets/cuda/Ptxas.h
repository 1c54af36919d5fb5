// The assembler of the CUDA toolkit: PTX to machine code, and the resources that it reports.
#pragma once

#include <map>
#include <string>

#include "codegen/Compile.h"
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
  std::string cubin, release;
  std::map<std::string, Resources> resources;  ///< by entry
};

/// The path of ptxas: on the PATH, or where the toolkit is installed by default; else empty.
std::string findPtxas();

/// Returns the assembler at a path. Errors: no program that can be run, or one that does not name a release.
llvm::Expected<Assembler> assemblerAt(llvm::StringRef path);

/// Assembles with the first of `assemblers` that can; with `findPtxas()` if there are none.
/// Errors: no ptxas, or what each of them says (an architecture or PTX that it is too old for).
llvm::Expected<Assembled> assemble(llvm::StringRef ptx, const Arch&,
                                   llvm::ArrayRef<Assembler> assemblers = {});

/// Machine code as text, by nvdisasm.
llvm::Expected<std::string> disassemble(llvm::StringRef cubin);

/// Blocks of so many threads, with so many bytes of dynamic shared memory, that one multiprocessor holds at
/// once.
int64_t residentBlocks(const Arch&, int64_t threads, int64_t dynamicBytes, const Resources&);

/// Whole clusters that the multiprocessors of one GPC hold at once, if each holds so many blocks.
int64_t residentClusters(const Arch&, int64_t cluster, int64_t blocks);

}  // namespace normc::codegen::cuda
