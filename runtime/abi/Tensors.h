// The tensors of a call, and their names.
#pragma once

#include <cstdint>
#include <string_view>

namespace normc::package {

/// The tensors of a call, in the order of normc_args.
enum Tensor : uint8_t { kX, kY, kDy, kDx, kScale, kBias, kDscale, kDbias, kMask, kTensorCount };
inline constexpr std::string_view kTensorNames[kTensorCount] = {"x",    "y",      "dy",    "dx",  "scale",
                                                                "bias", "dscale", "dbias", "mask"};
constexpr std::string_view name(Tensor tensor) { return kTensorNames[tensor]; }
/// x, y, dy, dx: the tensors with rows and features.
constexpr bool isXSized(Tensor tensor) { return tensor <= kDx; }

}  // namespace normc::package
