#include "autotune/check/Emulation.h"

#include <filesystem>

#include "codegen/emulator/EmulatedDriver.h"
#include "codegen/targets/cuda/Arch.h"

namespace normc::check {
namespace {

namespace fs = std::filesystem;
/// Elements of a trial beyond which it would take seconds.
constexpr int64_t kMaxElements = 1 << 19;

using Operands = std::vector<emulator::EmulatedDriver::Operand>;

Operands operandsOf(const package::Kernel& kernel) {
  Operands operands;
  for (const package::Operand& operand : kernel.operands) {
    const bool tensor = operand.role == package::Role::Tensor, written = operand.written();
    const std::string role(name(operand.role));
    operands.push_back({tensor ? operand.name : role + "." + operand.name, written, !written});
  }
  return operands;
}

}  // namespace

Result<std::string> emulatorLibrary() {
  const fs::path program = fs::canonical("/proc/self/exe");
  const fs::path library = (program.parent_path() / NORMC_FAKE_CUDA_FROM_PROGRAM).lexically_normal();
  std::error_code none;
  if (fs::exists(library, none)) return library.string();
  return Diagnostic{.message = "--emulate needs " + library.filename().string() + ", which is not in " +
                               library.parent_path().string(),
                    .hint = "it is built along with normc: keep both where the build put them"};
}

Emulation::Emulation(const gate::PackageFile& file, std::string library)
    : file_(file), library_(std::move(library)) {
  file.package().verify();
}

std::string Emulation::blob(size_t index) const { return file_.bytesOf(file_.manifest().blobs.at(index)); }

Result<gate::KernelVerdict> Emulation::judge(size_t index, gate::Judging how) const {
  const package::Kernel& kernel = file_.kernels().at(index);
  const auto notRun = [&](std::string why) {
    return gate::KernelVerdict{.kernel = index, .skipped = std::move(why)};
  };
  auto arch = codegen::cuda::findArch(kernel.isa);
  if (!arch) return notRun(llvm::toString(arch.takeError()));
  const std::string ptx = blob(kernel.blob);
  auto program = emulator::Program::compile(ptx);
  if (!program) return notRun(llvm::toString(program.takeError()));

  auto opened = emulator::EmulatedDriver::open(library_, int(arch->number / 10), int(arch->number % 10));
  if (!opened) return Diagnostic{.message = llvm::toString(opened.takeError())};
  const auto& driver = *opened;
  driver->guardBytes = gate::Storage::kGuard;
  driver->add(ptx, *program, operandsOf(kernel));
  if (kernel.cubin)
    driver->add(blob(*kernel.cubin), *program, operandsOf(kernel));  // ptxas made it of the PTX

  // A package of its own: what a context knows of a driver ends when the driver starts again.
  const gate::PackageFile file(file_.path(), 1, library_);
  const gate::CudaDevice device(0, library_);
  how.device = &device;
  how.maxElements = kMaxElements;
  how.observed = [&] {
    for (const auto& launched : driver->takeLaunches())
      if (!launched.report.ok()) return launched.report.text();
    return std::string();
  };
  Result<gate::KernelVerdict> judged = gate::judgeKernel(file, index, how);
  if (!judged) return judged;
  gate::KernelVerdict verdict = *std::move(judged);
  verdict.emulated = true;
  verdict.deviceLost = false;  // the next kernel gets another
  return verdict;
}

}  // namespace normc::check
