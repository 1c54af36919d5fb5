#include "autotune/gate/Storage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "dsl/Tolerance.h"

namespace normc::gate {

static constexpr int64_t kGuard = 256;
static constexpr uint8_t kGuardByte = 0xA5, kPoison = 0xFF;

Storage::Storage(int64_t bytes, int64_t offset, const CudaDevice* device, bool guardPages) : bytes_(bytes) {
  if (guardPages && !device) {
    pages_ = Pages(bytes + kGuard + 64 + offset);
    std::fill_n(pages_.data(), pages_.bytes(), kGuardByte);
    begin_ = (pages_.bytes() - bytes - offset) / 64 * 64 + offset;
    poison();
    return;
  }
  memory_.assign(bytes + 2 * kGuard + 64 + offset, kGuardByte);
  if (device) twin_ = CudaMemory(*device, int64_t(memory_.size()));
  auto address = device ? twin_.address() : reinterpret_cast<uintptr_t>(memory_.data());
  begin_ = kGuard + int64_t((64 - (address + kGuard) % 64) % 64) + offset;
  poison();
}

void* Storage::address() { return twin_.device() ? static_cast<uint8_t*>(twin_.data()) + begin_ : data(); }

void Storage::upload() const {
  if (twin_.device()) twin_.device()->upload(twin_.address(), memory_.data(), int64_t(memory_.size()));
}

void Storage::download() {
  if (twin_.device()) twin_.device()->download(memory_.data(), twin_.address(), int64_t(memory_.size()));
}

void Storage::poison() { std::fill_n(begin() + begin_, bytes_, kPoison); }

bool Storage::guardsIntact() const {
  auto intact = [](uint8_t b) { return b == kGuardByte; };
  return std::all_of(begin(), begin() + begin_, intact) && std::all_of(begin() + begin_ + bytes_, begin() + size(), intact);
}

bool Storage::gapsIntact(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                         int64_t elementBytes) const {
  int64_t dense = elementBytes;
  bool gaps = false;
  for (size_t d = shape.size(); d-- > 0; dense *= shape[d]) gaps |= shape[d] > 1 && strides[d] * elementBytes != dense;
  if (!gaps && dense >= bytes_) return true;  // nothing lies between elements
  std::vector<bool> used(bytes_, false);
  std::vector<int64_t> starts{0};
  for (size_t d = 0; d + 1 < shape.size(); ++d) {
    std::vector<int64_t> next;
    for (int64_t at : starts)
      for (int64_t i = 0; i < shape[d]; ++i) next.push_back(at + i * strides[d]);
    starts = std::move(next);
  }
  for (int64_t at : starts) std::fill_n(used.begin() + at * elementBytes, shape.back() * elementBytes, true);
  for (int64_t i = 0; i < bytes_; ++i)
    if (!used[i] && begin()[begin_ + i] != kPoison) return false;
  return true;
}

template <typename T>
static T at(const void* base, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const uint8_t*>(base) + index * int64_t(sizeof(T)), sizeof value);
  return value;
}
template <typename T>
static void set(void* base, int64_t index, T value) {
  std::memcpy(static_cast<uint8_t*>(base) + index * int64_t(sizeof(T)), &value, sizeof value);
}

static float fromBrain(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
static uint16_t toBrain(double value) { return uint16_t(std::bit_cast<uint32_t>(float(round(value, DType::BF16))) >> 16); }

// Between a half and a double whose value one has: 10 bits of fraction and 52, exponents about 15 and 1023.
static constexpr int kNarrower = 52 - 10, kExponents = 1023 - 15;

static double fromHalf(uint16_t bits) {
  const uint64_t sign = uint64_t(bits >> 15) << 63, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) return fraction ? std::nan("") : std::copysign(INFINITY, std::bit_cast<double>(sign));
  if (exponent == 0) return std::copysign(double(fraction) * 0x1p-24, std::bit_cast<double>(sign));
  return std::bit_cast<double>(sign | (exponent + kExponents) << 52 | fraction << kNarrower);
}
static uint16_t toHalf(double value) {
  value = round(value, DType::F16);
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | 0x7e00;
  if (std::isinf(value)) return sign | 0x7c00;
  const double magnitude = std::fabs(value);
  if (magnitude < 0x1p-14) return sign | uint16_t(magnitude * 0x1p24);
  return sign | uint16_t((std::bit_cast<uint64_t>(magnitude) >> kNarrower) - (uint64_t(kExponents) << 10));
}

template <typename T, typename Convert>
static void read(const void* base, int64_t index, int64_t stride, std::span<double> values, Convert convert) {
  for (double& value : values) value = convert(at<T>(base, index)), index += stride;
}
template <typename T, typename Convert>
static void write(void* base, int64_t index, int64_t stride, std::span<const double> values, Convert convert) {
  for (double value : values) set(base, index, T(convert(value))), index += stride;
}

static void readAs(DType type, const void* base, int64_t index, int64_t stride, std::span<double> values) {
  const auto same = [](auto value) { return double(value); };
  switch (type) {
    case DType::F32:
      return read<float>(base, index, stride, values, same);
    case DType::F64:
      return read<double>(base, index, stride, values, same);
    case DType::BF16:
      return read<uint16_t>(base, index, stride, values, fromBrain);
    case DType::F16:
      return read<uint16_t>(base, index, stride, values, fromHalf);
    case DType::I64:
      return read<int64_t>(base, index, stride, values, same);
    case DType::U8:
      return read<uint8_t>(base, index, stride, values, same);
  }
}

static void writeAs(DType type, void* base, int64_t index, int64_t stride, std::span<const double> values) {
  const auto same = [](double value) { return value; };
  switch (type) {
    case DType::F32:
      return write<float>(base, index, stride, values, same);
    case DType::F64:
      return write<double>(base, index, stride, values, same);
    case DType::BF16:
      return write<uint16_t>(base, index, stride, values, toBrain);
    case DType::F16:
      return write<uint16_t>(base, index, stride, values, toHalf);
    case DType::I64:
      return write<int64_t>(base, index, stride, values, same);
    case DType::U8:
      return write<uint8_t>(base, index, stride, values, same);
  }
}

void Storage::get(DType type, int64_t index, int64_t stride, std::span<double> values) const {
  readAs(type, data(), index, stride, values);
}

void Storage::put(DType type, int64_t index, int64_t stride, std::span<const double> values) {
  writeAs(type, data(), index, stride, values);
}

double Storage::get(DType type, int64_t index) const {
  double value = 0;
  get(type, index, 1, {&value, 1});
  return value;
}

double Storage::getField(DType type, size_t offset, size_t index) const {
  double value = 0;
  readAs(type, static_cast<const uint8_t*>(data()) + offset, int64_t(index), 1, {&value, 1});
  return value;
}

void Storage::putField(DType type, size_t offset, size_t index, double value) {
  writeAs(type, static_cast<uint8_t*>(data()) + offset, int64_t(index), 1, {&value, 1});
}

}  // namespace normc::gate
