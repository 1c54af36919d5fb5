// The field of normc_args that names a tensor: so that calls are built and read by a loop over the table of
// operands.
#pragma once

#include "runtime/abi/Operands.h"
#include "runtime/normc.h"

namespace normc {

/// In the order of Tensor.
inline constexpr std::array<const DLTensor * normc_args::*, kTensorCount> kTensorArguments = {
    &normc_args::x,
    &normc_args::y,
    &normc_args::dy,
    &normc_args::dx,
    &normc_args::scale,
    &normc_args::bias,
    &normc_args::dscale,
    &normc_args::dbias,
    &normc_args::mask,
    &normc_args::residual,
    &normc_args::residual_out,
    &normc_args::gate,
    &normc_args::mod_scale,
    &normc_args::mod_shift,
    &normc_args::dresidual_out,
    &normc_args::dresidual,
    &normc_args::dgate,
    &normc_args::dmod_scale,
    &normc_args::dmod_shift,
    &normc_args::codes,
    &normc_args::quant_scale,
    &normc_args::quant_scale_out,
    &normc_args::rope_cos,
    &normc_args::rope_sin};
static_assert(kTensorArguments.back(), "each tensor of the table has a field");

}  // namespace normc
