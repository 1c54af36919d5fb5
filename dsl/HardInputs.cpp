#include "dsl/HardInputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "dsl/Tolerance.h"

namespace normc {
namespace {

// Names in the order of the enumerators.
constexpr std::string_view kInputs[] = {
    "normal", "mean 1000",   "mean 1e4", "constant rows", "constant columns", "ramp",     "drift",
    "framed", "outlier row", "tiny",     "huge",          "denormal",         "with NaN", "with infinity"};
static_assert(std::size(kInputs) == size_t(HardInput::WithInfinity) + 1);
constexpr std::string_view kMasks[] = {"all real", "tails", "scattered", "one real", "all padded"};
static_assert(std::size(kMasks) == size_t(HardMask::AllPadded) + 1);

template <typename Enum, size_t N>
constexpr std::array<Enum, N> enumerators() {
  std::array<Enum, N> all{};
  for (size_t i = 0; i < N; ++i) all[i] = Enum(i);
  return all;
}

// Returns a hash of the seed and a position (splitmix64).
uint64_t mixed(uint64_t seed, uint64_t index) {
  uint64_t z = seed * 0xd1342543de82ef95u + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Returns the sum of 4 x 3 uniform values of 16 bits: close to normal, and computed with exact arithmetic
// only.
double normal(uint64_t seed, uint64_t index) {
  double sum = 0;
  for (uint64_t part = 0; part < 3; ++part) {
    const uint64_t word = mixed(seed, index * 3 + part);
    for (int shift = 0; shift < 64; shift += 16) sum += static_cast<double>(word >> shift & 0xffff);
  }
  return (sum + 6) * 0x1p-16 - 6;
}

// True if the type holds no number of 1e10: its outliers and its small numbers are less extreme.
bool hasNarrowRange(DType type) { return largest(type) < 1e10; }

// Returns the largest amplitude such that the sum of squares of all elements is finite in f32.
double hugeAmplitude(int64_t elements, DType type) {
  if (hasNarrowRange(type)) return 1e4;
  const double squares = 64.0 * static_cast<double>(std::max<int64_t>(elements, 1));
  return std::min(1e18, std::sqrt(largest(DType::F32) / squares));
}

struct Position {
  int64_t index, row, feature;
};

// Returns a value on straight lines between nine random values, each feature on its own. All arithmetic is
// exact.
double wandering(uint64_t seed, Position at, const Extents& extents) {
  constexpr int64_t parts = 8;
  const int64_t rows = std::max<int64_t>(extents.totalRows() - 1, 1),
                part = std::min(at.row * parts / rows, parts - 1);
  const auto corner = [&](int64_t i) { return 3 * normal(seed + 1, at.feature * (parts + 1) + i); };
  const double along = static_cast<double>(((at.row * parts - part * rows) << 16) / rows) * 0x1p-16;
  return corner(part) + along * (corner(part + 1) - corner(part));
}

// True for the few elements that differ from the rest: padding around data, or the first of a sequence.
bool isFrame(Position at, const Extents& extents) {
  constexpr int64_t width = 32, least = 256, sequence = 128;
  const auto ends = [](int64_t i, int64_t n) { return n >= least && (i < width || i >= n - width); };
  return ends(at.feature, extents.features) ||
         ends(at.row % std::max<int64_t>(extents.rows, 1), extents.rows) ||
         (extents.totalRows() >= 8 * sequence && at.row % sequence == sequence / 2);
}

double valueAt(HardInput input, Position at, const Extents& extents, DType type, uint64_t seed) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const int64_t rows = extents.totalRows(), elements = rows * extents.features;
  const double z = normal(seed, at.index);
  const auto everyFifthZero = [seed](int64_t line) { return line % 5 == 4 ? 0 : 100 * normal(seed, line); };
  switch (input) {
    case HardInput::Normal:
      return z;
    case HardInput::Mean1000:
      return 1000 + z / 2;
    case HardInput::Mean1e4:
      return 1e4 + z;
    case HardInput::ConstantRows:
      return everyFifthZero(at.row);
    case HardInput::ConstantColumns:
      return everyFifthZero(at.feature);
    case HardInput::Ramp:
      return elements == 1 ? 1 : 2.0 * static_cast<double>(at.index) / static_cast<double>(elements - 1) - 1;
    case HardInput::Drift:
      return wandering(seed, at, extents) + z / 4;
    case HardInput::Framed:
      return isFrame(at, extents) ? 0 : 100 + z;
    case HardInput::OutlierRow:
      return at.row == rows / 2 ? z * (hasNarrowRange(type) ? 1e3 : 1e4) : z;
    case HardInput::Tiny:
      return z * (hasNarrowRange(type) ? 0x1p-14 : 1e-20);
    case HardInput::Huge:
      return z * hugeAmplitude(elements, type);
    case HardInput::Denormal: {
      const int digits = std::min(infoOf(type).format.precision - 1, 23);
      const double unit = ulp(0, type), span = std::ldexp(1, digits);
      return std::floor(z / 6 * span) * unit;
    }
    case HardInput::WithNan:
      return at.index == elements / 2 ? std::numeric_limits<double>::quiet_NaN() : z;
    case HardInput::WithInfinity:
      if (at.index == elements / 3) return infinity;
      return at.index == elements - 1 ? -infinity : z;
  }
  return z;
}

}  // namespace

std::string_view name(HardInput input) { return kInputs[size_t(input)]; }

std::span<const HardInput> allHardInputs() {
  static constexpr auto all = enumerators<HardInput, std::size(kInputs)>();
  return all;
}

std::vector<double> hardInput(HardInput input, const Extents& extents, DType type, uint64_t seed) {
  std::vector<double> values(extents.totalRows() * extents.features);
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    const Position at{i, i / extents.features, i % extents.features};
    values[i] = round(valueAt(input, at, extents, type, seed), type);
  }
  return values;
}

std::vector<double> normalValues(int64_t count, DType type, uint64_t seed, double mean, double sigma) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = round(mean + sigma * normal(seed, i), type);
  return values;
}

std::string_view name(HardMask mask) { return kMasks[size_t(mask)]; }

std::span<const HardMask> allHardMasks() {
  static constexpr auto all = enumerators<HardMask, std::size(kMasks)>();
  return all;
}

std::vector<uint8_t> hardMask(HardMask mask, const Extents& extents, uint64_t seed) {
  std::vector<uint8_t> real(extents.totalRows());
  for (int64_t row = 0; row < static_cast<int64_t>(real.size()); ++row) {
    const int64_t segment = row / extents.rows, inSegment = row % extents.rows;
    switch (mask) {
      case HardMask::AllReal:
        real[row] = 1;
        break;
      case HardMask::Tails:
        real[row] = inSegment < 1 + static_cast<int64_t>(mixed(seed, segment) % extents.rows);
        break;
      case HardMask::Scattered:
        real[row] = mixed(seed, row) % 3 != 0;
        break;
      case HardMask::OneReal:
        real[row] = row == static_cast<int64_t>(real.size()) / 2;
        break;
      case HardMask::AllPadded:
        break;
    }
  }
  return real;
}

}  // namespace normc
