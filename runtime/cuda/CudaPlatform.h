// A CUDA device for plans: the kernels it can run, as machine code or as PTX.
#pragma once

#include "runtime/cuda/Arch.h"
#include "runtime/cuda/Device.h"
#include "runtime/plan/Backend.h"

namespace normc::runtime {

class CudaPlatform final : public Platform {
 public:
  /// Opens the driver and the device, and reads `isa_cap` of the request.
  static normc_status open(const Context& context, const normc_request& request,
                           std::unique_ptr<const Platform>& platform);

  const Place& place() const override { return place_; }
  Verdict judge(const Kernel& kernel) const override;
  std::string remedy() const override;
  normc_status bind(const Binding& binding, std::unique_ptr<Backend>& backend) const override;

 private:
  CudaPlatform() = default;

  Place place_;
  std::shared_ptr<const Device> device_;
  std::optional<Arch> cap_;  ///< the newest architecture that the caller allows
};

/// Returns the best form in which a kernel can run on a device of this architecture.
Rung rungOf(const Kernel& kernel, const Arch& device);

}  // namespace normc::runtime
