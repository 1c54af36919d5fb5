#include "tools/normc/Checker.h"

#include <cstdlib>

#include "runtime/abi/Isa.h"

namespace normc::cli {
namespace {

/// Returns why the kernel cannot run on this processor; empty if it can.
std::string processorRefuses(const std::string& isa) {
  const Isa *here = cpuIsa(), *needed = findIsa(isa);
  if (here && needed && includes(*here, *needed)) return "";
  return "needs " + isa + "; this processor has " + normc_cpu_isa();
}

}  // namespace

Checker::Checker(const PackageFile& file, const Place& place, bool emulate) : file_(file), place_(place) {
  if (emulate) emulation_.emplace(file);
  if (!place_.onCuda()) return;
  translated([&] { facts_ = file.context().cudaDevice(place_.index()); });
  device_ = place_.open();
}

KernelVerdict Checker::check(size_t kernel, Judging how) {
  const package::Kernel& manifest = file_.kernels()[kernel];
  if (emulation_ && manifest.onCuda()) return emulation_->judge(kernel, std::move(how));
  KernelVerdict verdict;
  verdict.kernel = kernel;
  verdict.skipped = whyNot(manifest);
  if (!verdict.skipped.empty()) return verdict;
  how.device = device_.get();
  verdict = judgeKernel(file_, kernel, how);
  if (verdict.shadowed && !how.stop()) {  // of another generator, or a fallback: right or wrong all the same
    verdict = judgeKernel(file_.alone(kernel, place_.cudaLibrary()), 0, how);
    verdict.kernel = kernel;
  }
  if (verdict.deviceLost) lostBy_ = kernel;
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
    return "needs " + isa + " or newer; " + place_.text() + " is " + archText();
  return "";
}

}  // namespace normc::cli
