// The CPU of this machine as a device of plans.
#pragma once

#include "runtime/abi/Isa.h"
#include "runtime/plan/Backend.h"

namespace normc::runtime {

class CpuPlatform final : public Platform {
 public:
  /// Reads `isa_cap` and `denormals` of the request.
  static normc_status open(const normc_request& request, std::unique_ptr<const Platform>& platform);

  const Place& place() const override { return place_; }
  Verdict judge(const Kernel& kernel) const override;
  std::string remedy() const override;
  normc_status bind(const Binding& binding, std::unique_ptr<Backend>& backend) const override;

 private:
  CpuPlatform() = default;

  Place place_;
  const Isa* cpu_ = nullptr;  ///< the newest set of the processor; null if it has none of them
  bool keepDenormals_ = false;
  const Isa* cap_ = nullptr;  ///< the newest set that the caller allows; null: no cap
};

}  // namespace normc::runtime
