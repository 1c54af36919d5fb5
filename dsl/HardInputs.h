// Inputs that expose wrong normalization kernels, the same on every machine.
//
// End-to-end tests, the tuner's gate and `normc check` use this list. A value depends only on the seed and
// its index, and is computed without library functions whose digits depend on the platform.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dsl/Problem.h"
#include "dsl/StateFields.h"

namespace normc {

enum class HardInput {
  Normal,           ///< mean 0, sigma 1
  Mean1000,         ///< mean 1000, sigma 0.5: a one-pass variance loses 7 digits
  Mean1e4,          ///< mean 1e4, sigma 1
  ConstantRows,     ///< variance 0 in every row; one row in five is zero
  ConstantColumns,  ///< variance 0 in every feature; one in five is zero
  Ramp,             ///< grows steadily from -1 to 1: no part of it is like the whole
  Drift,  ///< each feature wanders over the rows, as those of a text do: its first rows are far from its mean
  Framed,      ///< 100, sigma 1, in zeros: 32 at each end of long rows and of long columns, and a row in 128
  OutlierRow,  ///< one row 1e4 times as large as the others (1e3 in f16)
  Tiny,        ///< 1e-20: squares are subnormal in f32 (f16: its own smallest normals)
  Huge,        ///< up to 1e18, less where f32 could not hold the sum of squares (f16: 1e4)
  Denormal,    ///< subnormal in the type: kernels may take them for zero
  WithNan,     ///< normal, one NaN
  WithInfinity,  ///< normal, an infinity of each sign in two rows
};
std::string_view name(HardInput);
/// Returns all inputs, in the order above.
std::span<const HardInput> allHardInputs();

/// Returns values in logical order [segment][row][feature], rounded to `type`.
std::vector<double> hardInput(HardInput, const Extents&, DType type, uint64_t seed = 1);
/// Returns `count` values of a normal distribution about `mean`, rounded to `type`: gradients, scales,
/// biases.
std::vector<double> normalValues(int64_t count, DType type, uint64_t seed, double mean = 0, double sigma = 1);

enum class HardMask {
  AllReal,
  Tails,      ///< every segment ends in padding, of a different length
  Scattered,  ///< about one row in three is padded
  OneReal,    ///< a single real row in the whole batch
  AllPadded,
};
std::string_view name(HardMask);
std::span<const HardMask> allHardMasks();

/// Returns one byte for each row, [segment][row], 1 = real.
std::vector<uint8_t> hardMask(HardMask, const Extents&, uint64_t seed = 1);

}  // namespace normc
