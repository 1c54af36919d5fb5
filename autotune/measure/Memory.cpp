#include "autotune/measure/Memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <numeric>
#include <random>
#include <utility>

namespace normc::measure {
namespace {

/// The most elements that are made one by one; the rest repeats them.
constexpr int64_t kPattern = (1 << 20) - 3;

/// Returns the sum of four uniform 16-bit numbers: nearly normal, at a few nanoseconds each.
float nearlyNormal(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t bits = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  bits ^= bits >> 27;
  const uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  return (float(sum) - 131070.0f) / 37837.2f;  // mean and deviation of that sum
}

}  // namespace

Memory::Memory(int64_t bytes) : bytes_(bytes) {
  data_ = mmap(nullptr, std::max<int64_t>(bytes, 1), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (data_ == MAP_FAILED) throw std::bad_alloc();
}
Memory::Memory(Memory&& other) noexcept { *this = std::move(other); }
Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
Memory::~Memory() {
  if (data_) munmap(data_, std::max<int64_t>(bytes_, 1));
}

Memory::Memory(int64_t bytes, Unused) : bytes_(bytes) {
  data_ =
      mmap(nullptr, std::max<int64_t>(bytes, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data_ == MAP_FAILED) throw std::bad_alloc();
}

Memory scattered(const Memory& from, uint64_t seed) {
  Memory to = scatteredZeros(from.bytes(), seed);
  std::memcpy(to.data(), from.data(), size_t(from.bytes()));
  return to;
}

Memory scatteredZeros(int64_t size, uint64_t seed) {
  const auto page = size_t(sysconf(_SC_PAGESIZE)), bytes = size_t(size);
  Memory to(size, Memory::Unused());
  std::vector<size_t> pages((bytes + page - 1) / page);
  std::iota(pages.begin(), pages.end(), 0);
  std::mt19937_64 random(seed);
  std::shuffle(pages.begin(), pages.end(), random);
  auto* const begin = static_cast<volatile char*>(to.data());
  for (const size_t at : pages) begin[at * page] = 0;
  return to;
}

void store(const std::vector<float>& values, DType type, void* to) {
  const auto each = [&](auto convert) {
    auto* out = static_cast<decltype(convert(0.f))*>(to);
    for (size_t i = 0; i < values.size(); ++i) out[i] = convert(values[i]);
  };
  switch (type) {
    case DType::F32:
      return each([](float v) { return v; });
    case DType::F64:
      return each([](float v) { return double(v); });
    case DType::F16:
      return each([](float v) { return static_cast<_Float16>(v); });
    case DType::BF16:
      return each([](float v) {  // to nearest, ties to even; the input is never a NaN
        const uint32_t bits = std::bit_cast<uint32_t>(v);
        return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
      });
    default:
      return;  // not a tensor of numbers
  }
}

void fill(Memory& memory, DType type, int64_t count, uint64_t seed, float mean, float sigma) {
  constexpr int64_t kBlock = 4096;
  std::vector<float> block;
  char* const to = static_cast<char*>(memory.data());
  const int64_t made = std::min(count, kPattern);
  for (int64_t begin = 0; begin < made; begin += kBlock) {
    block.resize(size_t(std::min(kBlock, made - begin)));
    for (float& value : block) value = mean + sigma * nearlyNormal(seed);
    store(block, type, to + begin * bytes(type));
  }
  for (int64_t begin = made; begin < count; begin += made)
    std::memcpy(to + begin * bytes(type), to, size_t(std::min(made, count - begin) * bytes(type)));
}

gate::CudaMemory filled(const gate::CudaDevice& device, DType type, int64_t size, uint64_t seed) {
  const int64_t count = std::clamp<int64_t>(size / bytes(type), 1, kPattern);
  Memory pattern(count * bytes(type));
  fill(pattern, type, count, seed, 0, 1);
  gate::CudaMemory memory(device, size);
  const int64_t have = std::min(size, pattern.bytes());
  device.upload(memory.address(), pattern.data(), have);
  device.repeat(memory.address(), have, size);
  device.synchronize();
  return memory;
}

Held Held::ofBytes(int64_t bytes, const gate::CudaDevice* device) {
  return device ? Held(gate::CudaMemory(*device, bytes)) : Held(Memory(bytes));
}

Held Held::of(Memory host, const gate::CudaDevice* device) {
  if (!device) return Held(std::move(host));
  gate::CudaMemory memory(*device, host.bytes());
  device->upload(memory.address(), host.data(), host.bytes());
  device->synchronize();
  return Held(std::move(memory));
}

}  // namespace normc::measure
