// Emulation of a build without Boost.Context, and so without the emulator.
#include "llvm/Support/ErrorHandling.h"
#include "tools/normc/Emulation.h"

namespace normc::cli {

Emulation::Emulation(const PackageFile& file) : file_(file) { require(); }

void Emulation::require() {
  throw refused("this normc was built without the emulator that --emulate needs",
                "install Boost.Context (libboost-context-dev) and build it again");
}

KernelVerdict Emulation::judge(size_t, Judging) const { llvm_unreachable("the constructor throws"); }

}  // namespace normc::cli
