// The tensors that stand around a norm (docs/around-a-norm.md): one row for each. Hosts take and make them by
// rows of this table, and what a plan does with each is in `Prepared`.
#pragma once

#include <array>
#include <string_view>

#include "runtime/normc.h"

namespace normc::hosts {

struct AroundRow {
  std::string_view name;
  const DLTensor* normc_args::* argument;
};

/// Inputs of forward and what they make, then gradients: what a call may leave out is behind what it reads.
inline constexpr std::array<AroundRow, 14> kAround{{
    {"residual", &normc_args::residual},
    {"residual_out", &normc_args::residual_out},
    {"gate", &normc_args::gate},
    {"mod_scale", &normc_args::mod_scale},
    {"mod_shift", &normc_args::mod_shift},
    {"rope_cos", &normc_args::rope_cos},
    {"rope_sin", &normc_args::rope_sin},
    {"quant_scale", &normc_args::quant_scale},
    {"quant_scale_out", &normc_args::quant_scale_out},
    {"dresidual_out", &normc_args::dresidual_out},
    {"dresidual", &normc_args::dresidual},
    {"dgate", &normc_args::dgate},
    {"dmod_scale", &normc_args::dmod_scale},
    {"dmod_shift", &normc_args::dmod_shift},
}};

/// A tensor around the norm of a plan.
struct Around {
  const AroundRow* row = nullptr;
  normc_tensor_use use = NORMC_TENSOR_READ;
  normc_tensor_shape shape = NORMC_TENSOR_ELEMENTS;
  const char* sameAs = nullptr;  ///< the tensor that it is, if no call takes it
  int64_t pairs = 0;             ///< of NORMC_TENSOR_PER_PAIR
  int64_t blocks = 0;            ///< of NORMC_TENSOR_PER_BLOCK; 0: a row has one
  DLDataType dtype = {};

  /// True if each row has elements of its own.
  bool isOfRows() const {
    return shape == NORMC_TENSOR_ELEMENTS || shape == NORMC_TENSOR_PER_PAIR ||
           shape == NORMC_TENSOR_PER_BLOCK;
  }
  bool isRead() const { return use == NORMC_TENSOR_READ || use == NORMC_TENSOR_READ_IF_GIVEN; }
  bool isWritten() const { return use == NORMC_TENSOR_WRITTEN || use == NORMC_TENSOR_OPTIONAL; }
};

}  // namespace normc::hosts
