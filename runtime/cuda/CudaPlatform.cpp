#include "runtime/cuda/CudaPlatform.h"

#include "runtime/core/Error.h"
#include "runtime/cuda/CudaBackend.h"

namespace normc::runtime {
namespace {

/// The first compute capability with clusters.
constexpr int kClusterNumber = 90;

std::string needs(const Phase& phase, const DeviceFacts& device) {
  if (phase.launch->cluster > 1 && device.arch.number() < kClusterNumber)
    return "launches clusters of blocks; " + device.arch.text() + " has none";
  if (phase.launch->shared > device.sharedPerBlock)
    return "needs " + std::to_string(phase.launch->shared) + " bytes of shared memory a block; " +
           device.label() + " has " + std::to_string(device.sharedPerBlock);
  return {};
}

}  // namespace

Rung rungOf(const Kernel& kernel, const Arch& device) {
  const std::optional<Arch> arch = Arch::parse(kernel.isa);
  if (!arch) return Rung::None;
  if (kernel.cubin && arch->cubinRunsOn(device))
    return arch->sameCapability(device) ? Rung::ExactCubin : Rung::SameMajorCubin;
  return arch->ptxRunsOn(device) ? Rung::Ptx : Rung::None;
}

normc_status CudaPlatform::open(const Context& context, const normc_request& request,
                                std::unique_ptr<const Platform>& platform) {
  std::unique_ptr<CudaPlatform> made(new CudaPlatform());
  if (request.isa_cap && !(made->cap_ = Arch::parse(request.isa_cap)))
    return fail(NORMC_INVALID_ARGUMENT, "request.isa_cap is '", request.isa_cap,
                "'; on a CUDA device it must be sm_NN, e.g. sm_90");
  NORMC_TRY(context.cuda().device(request.device_id, made->device_));
  made->place_ = {kDLCUDA, request.device_id, made->device_->label(), made->device_->context()};
  platform = std::move(made);
  return NORMC_OK;
}

Platform::Verdict CudaPlatform::judge(const Kernel& kernel) const {
  const auto refuse = [](std::string reason) { return Verdict{.refusal = std::move(reason)}; };
  const DeviceFacts& device = device_->facts();
  if (!kernel.onCuda()) return refuse("is for device '" + kernel.device + "'; this plan is for 'cuda'");
  const Rung rung = rungOf(kernel, device.arch);
  const Arch arch = *Arch::parse(kernel.isa);  // the manifest is checked
  if (rung == Rung::None)
    return refuse("needs " + kernel.isa + (arch.suffix ? "" : " or newer") + "; " + device.label() + " is " +
                  device.arch.text());
  if (cap_ && arch.number() > cap_->number())
    return refuse("needs " + kernel.isa + ", newer than the cap " + cap_->text());
  for (const Phase& phase : kernel.phases)
    if (std::string reason = needs(phase, device); !reason.empty()) return refuse(std::move(reason));

  static constexpr const char* kAdvantages[] = {
      "", "is PTX for the newest architecture that the device takes",
      "has a cubin for the nearest architecture of the same major number",
      "has a cubin for exactly this device"};
  // Code with a suffix runs on fewer devices and uses more of their features, so it ranks higher.
  const int rank = 10000 * int(rung) + 2 * arch.number() + (arch.suffix != '\0');
  return {.rank = rank, .advantage = kAdvantages[int(rung)]};
}

std::string CudaPlatform::remedy() const {
  const Arch& device = device_->facts().arch;
  return "compile the package with --target " +
         (cap_ && cap_->number() < device.number() ? *cap_ : device).text();
}

normc_status CudaPlatform::bind(const Binding& binding, std::unique_ptr<Backend>& backend) const {
  return CudaBackend::create(device_, binding, backend);
}

}  // namespace normc::runtime
