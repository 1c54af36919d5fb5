// What caches are told. LLVM's `nontemporal` says that nobody comes back to some
// memory soon; NVPTX drops it. So such accesses become inline PTX, when everything
// else has been optimised: until then they are loads and stores like all others, and
// nothing has to be said of what may move across them.
#pragma once

namespace llvm {
class Module;
}

namespace normc::codegen::cuda {

/// Nontemporal accesses of whole words become `ld.global.cs` (`.cs.nc` where nobody
/// writes) and `st.global.cs`: their lines are the first to leave the caches. Those
/// that the hardware would not make as one access stay as they are.
void hintCaches(llvm::Module&);

}  // namespace normc::codegen::cuda
