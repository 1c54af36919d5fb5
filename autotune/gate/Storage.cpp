#include "autotune/gate/Storage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "dsl/Tolerance.h"

namespace normc::gate {

/// A guard that is read is a large number in most types, so that it shows in a sum: -1.7e38 in f32 and bf16.
static constexpr uint8_t kGuardByte = 0xFE, kPoison = 0xFF;

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
  return std::all_of(begin(), begin() + begin_, intact) &&
         std::all_of(begin() + begin_ + bytes_, begin() + size(), intact);
}

bool Storage::gapsIntact(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                         int64_t elementBytes) const {
  int64_t dense = elementBytes;
  bool gaps = false;
  for (size_t d = shape.size(); d-- > 0; dense *= shape[d])
    gaps |= shape[d] > 1 && strides[d] * elementBytes != dense;
  if (!gaps && dense >= bytes_) return true;  // there are no gaps between elements
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

namespace {

/// A number of type bf16.
struct Brain {
  uint16_t bits = 0;
  Brain() = default;
  explicit Brain(double value)
      : bits(uint16_t(std::bit_cast<uint32_t>(float(round(value, DType::BF16))) >> 16)) {}
  explicit operator double() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

/// A number of type e4m3.
struct Quarter {
  uint8_t bits = 0;
  Quarter() = default;
  explicit Quarter(double value) {
    const double size = std::min(std::abs(round(value, DType::E4M3)), largest(DType::E4M3));
    int exponent = std::max(std::ilogb(size), -6);
    if (size < 0x1p-6) exponent = -6;
    const int steps = int(std::ldexp(size, 3 - exponent));  // 8 to 15, fewer below the normal numbers
    bits =
        uint8_t((std::signbit(value) ? 0x80 : 0) + (steps < 8 ? steps : ((exponent + 7) << 3) + steps - 8));
  }
  explicit operator double() const {
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    if (exponent == 15 && fraction == 7) return std::nan("");
    const double size = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
    return bits & 0x80 ? -size : size;
  }
};

/// A power of two, of type e8m0.
struct Power {
  uint8_t bits = 0;
  Power() = default;
  explicit Power(double value) : bits(uint8_t(std::ilogb(value) + 127)) {}
  explicit operator double() const { return bits == 255 ? std::nan("") : std::ldexp(1, bits - 127); }
};

/// Calls `body` with an element of the type, which converts from and to double.
template <typename Body>
void withElement(DType type, Body body) {
  switch (type) {
    case DType::F32:
      return body(float());
    case DType::F64:
      return body(double());
    case DType::BF16:
      return body(Brain());
    case DType::F16:
      return body(static_cast<_Float16>(0));
    case DType::I64:
      return body(int64_t());
    case DType::U8:
      return body(uint8_t());
    case DType::I8:
      return body(int8_t());
    case DType::E4M3:
      return body(Quarter());
    case DType::E8M0:
      return body(Power());
  }
}

void readAs(DType type, const uint8_t* base, int64_t index, int64_t stride, std::span<double> values) {
  withElement(type, [&](auto element) {
    for (double& value : values) {
      std::memcpy(&element, base + index * int64_t(sizeof element), sizeof element);
      value = static_cast<double>(element);
      index += stride;
    }
  });
}

void writeAs(DType type, uint8_t* base, int64_t index, int64_t stride, std::span<const double> values) {
  withElement(type, [&](auto element) {
    for (const double value : values) {
      element = static_cast<decltype(element)>(value);
      std::memcpy(base + index * int64_t(sizeof element), &element, sizeof element);
      index += stride;
    }
  });
}

}  // namespace

void Storage::get(DType type, int64_t index, int64_t stride, std::span<double> values) const {
  readAs(type, begin() + begin_, index, stride, values);
}

void Storage::put(DType type, int64_t index, int64_t stride, std::span<const double> values) {
  writeAs(type, begin() + begin_, index, stride, values);
}

double Storage::get(DType type, int64_t index) const {
  double value = 0;
  get(type, index, 1, {&value, 1});
  return value;
}

double Storage::getField(DType type, size_t offset, size_t index) const {
  double value = 0;
  readAs(type, begin() + begin_ + offset, int64_t(index), 1, {&value, 1});
  return value;
}

void Storage::putField(DType type, size_t offset, size_t index, double value) {
  writeAs(type, begin() + begin_ + offset, int64_t(index), 1, {&value, 1});
}

}  // namespace normc::gate
