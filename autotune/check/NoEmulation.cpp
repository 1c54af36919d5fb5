// Emulation of a build without Boost.Context, and so without the emulator.
#include "autotune/check/Emulation.h"
#include "llvm/Support/ErrorHandling.h"

namespace normc::check {

Result<std::string> emulatorLibrary() {
  return Diagnostic{.message = "this normc was built without the emulator that --emulate needs",
                    .hint = "install Boost.Context (libboost-context-dev) and build it again"};
}

Emulation::Emulation(const gate::PackageFile& file, std::string) : file_(file) {}

Result<gate::KernelVerdict> Emulation::judge(size_t, gate::Judging) const {
  llvm_unreachable("there is no library to make one with");
}

}  // namespace normc::check
