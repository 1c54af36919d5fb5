#include "autotune/check/Checker.h"

#include <cstdlib>

#include "runtime/abi/Isa.h"

namespace normc::check {
namespace {

/// Returns why the kernel cannot run on this processor; empty if it can.
std::string processorRefuses(const std::string& isa) {
  const Isa *here = cpuIsa(), *needed = findIsa(isa);
  if (here && needed && includes(*here, *needed)) return "";
  return "needs " + isa + "; this processor has " + normc_cpu_isa();
}

}  // namespace

Checker::Checker(const gate::PackageFile& file, std::optional<int> cudaDevice,
                 const std::optional<std::string>& emulator)
    : file_(file) {
  if (emulator) emulation_.emplace(file, *emulator);
  if (!cudaDevice) return;
  facts_ = file.context().cudaDevice(*cudaDevice);
  device_ = std::make_unique<gate::CudaDevice>(*cudaDevice, file.cudaLibrary());
}

Result<gate::KernelVerdict> Checker::check(size_t kernel, gate::Judging how) {
  const package::Kernel& manifest = file_.kernels()[kernel];
  if (emulation_ && manifest.onCuda()) return emulation_->judge(kernel, std::move(how));
  if (const std::string reason = whyNot(manifest); !reason.empty())
    return gate::KernelVerdict{.kernel = kernel, .skipped = reason};
  how.device = device_.get();
  Result<gate::KernelVerdict> verdict = gate::judgeKernel(file_, kernel, how);
  if (verdict && verdict->deviceLost) lostBy_ = kernel;
  return verdict;
}

std::string Checker::text() const {
  return device_ ? std::string(facts_.name) + ", " + archText() : normc_cpu_isa();
}

/// Why the kernel cannot run there; empty if it can.
std::string Checker::whyNot(const package::Kernel& kernel) const {
  const std::string& isa = kernel.isa;
  if (!kernel.onCuda()) return device_ ? "for a CPU; check it without --device" : processorRefuses(isa);
  if (!device_) return "for a CUDA device; --emulate runs them here, --device cuda:0 on a GPU";
  if (lostBy_) return "the device was lost with kernel " + std::to_string(*lostBy_);
  if (std::atoi(isa.c_str() + 3) > number())
    return "needs " + isa + " or newer; " + device_->name() + " is " + archText();
  return "";
}

}  // namespace normc::check
