// Evict-first accesses. LLVM's `nontemporal` says that memory is not accessed again soon,
// and NVPTX drops it. So such accesses become inline PTX after all other
// optimisations: until then they are ordinary loads and stores, and
// no rule is needed for what may move across them.
#pragma once

namespace llvm {
class Module;
}

namespace normc::codegen::cuda {

/// Turns nontemporal accesses of whole words into `ld.global.cs` (`.cs.nc` of memory that the kernel does
/// not write) and `st.global.cs`: the caches evict their lines first. Accesses
/// that the hardware would not make as one stay as they are.
void hintCaches(llvm::Module&);

}  // namespace normc::codegen::cuda
