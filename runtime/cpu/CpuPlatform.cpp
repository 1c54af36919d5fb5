#include "runtime/cpu/CpuPlatform.h"

#include <algorithm>
#include <array>

#include "runtime/abi/CpuCore.h"
#include "runtime/core/Error.h"
#include "runtime/cpu/CpuBackend.h"

namespace normc::runtime {

normc_status CpuPlatform::open(const normc_request& request, std::unique_ptr<const Platform>& platform) {
  std::unique_ptr<CpuPlatform> made(new CpuPlatform());
  made->cpu_ = cpuIsa();
  made->keepDenormals_ = request.denormals == NORMC_DENORMALS_KEEP;
  if (request.device_id != 0)
    return fail(NORMC_INVALID_ARGUMENT, "request.device_id is ", request.device_id,
                "; the CPU has no other number than 0");
  if (request.isa_cap && !(made->cap_ = findIsa(request.isa_cap)))
    return fail(NORMC_INVALID_ARGUMENT, "request.isa_cap is '", request.isa_cap, "'; it must be one of ",
                isaNames());
  platform = std::move(made);
  return NORMC_OK;
}

/// True if a kernel stores bf16 by the instruction of its set, which takes denormals for zeros. Halide rounds
/// by integers.
static bool roundsByInstruction(const Kernel& kernel, const Isa& isa) {
  const ElementTypes types = kernel.parts.types();
  const std::array<DType, 4> all = {types.data, types.params, types.output, types.stream};
  return isa.roundsBF16 && kernel.generator == "mlir" && std::ranges::count(all, DType::BF16) != 0;
}

Platform::Verdict CpuPlatform::judge(const Kernel& kernel) const {
  const auto refuse = [](std::string reason) { return Verdict{.refusal = std::move(reason)}; };
  if (kernel.device != "cpu") return refuse("is for device '" + kernel.device + "'; this plan is for 'cpu'");
  const Isa* const isa = findIsa(kernel.isa);
  if (!isa) return refuse("needs '" + kernel.isa + "', which this runtime does not know");
  if (!cpu_ || !includes(*cpu_, *isa))
    return refuse("needs " + kernel.isa +
                  (cpu_ || isa->needs.empty() ? "" : " with " + std::string(isa->needs)) +
                  "; this processor has " + std::string(cpu_ ? cpu_->name : "none of " + isaNames()));
  if (cap_ && isa->level > cap_->level)
    return refuse("needs " + kernel.isa + ", newer than the cap " + std::string(cap_->name));
  if (keepDenormals_ && roundsByInstruction(kernel, *isa))
    return refuse(
        "rounds to bf16 by an instruction that takes denormals for zeros, and request.denormals keeps them; "
        "a kernel for x86-64-v4 would serve");
  const auto fit = kernel.core.empty()        ? Verdict::OfAny
                   : kernel.core == cpuCore() ? Verdict::OfThis
                                              : Verdict::OfOther;
  return {.rank = isa->level, .advantage = "has the newer instruction set", .fit = fit};
}

std::string CpuPlatform::remedy() const {
  const Isa* newest = nullptr;  // of the sets that a plan may use
  for (const Isa& isa : kIsas) {
    const bool capped = cap_ && isa.level > cap_->level;
    if (cpu_ && includes(*cpu_, isa) && !capped && !(keepDenormals_ && isa.roundsBF16)) newest = &isa;
  }
  return newest ? "compile the package with --target " + std::string(newest->name) + " as well" : "";
}

normc_status CpuPlatform::bind(const Binding& binding, std::unique_ptr<Backend>& backend) const {
  return CpuBackend::create(binding, backend);
}

}  // namespace normc::runtime
