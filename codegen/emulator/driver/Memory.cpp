// Device memory: host memory between red zones, in a registry that every copy checks.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "codegen/emulator/driver/State.h"

namespace normc::cuda {
namespace {

constexpr size_t kZone = 256;
constexpr unsigned char kZoneByte = 0xa5, kPoisonByte = 0xff;

bool isDamaged(const fake::Allocation& allocation) {
  const auto intact = [](const char* zone) {
    return std::all_of(zone, zone + kZone, [](char c) { return static_cast<unsigned char>(c) == kZoneByte; });
  };
  const char* const storage = allocation.storage.get();
  return !intact(storage) || !intact(storage + kZone + allocation.bytes);
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

CUresult copy(fake::Call& call, CUdeviceptr device, CUdeviceptr otherDevice, size_t bytes, CUstream stream,
              void* to, const void* from) {
  if (bytes == 0) return CUDA_SUCCESS;
  if (!call->holds(device, bytes) || (otherDevice && !call->holds(otherDevice, bytes)))
    return CUDA_ERROR_INVALID_VALUE;
  return call.enqueue(stream, [=] {
    std::memmove(to, from, bytes);
    return CUDA_SUCCESS;
  });
}

/// Writes `value`, `width` bytes wide, `count` times.
CUresult fill(fake::Call& call, CUdeviceptr to, unsigned value, size_t width, size_t count, CUstream stream) {
  if (!call->holds(to, width * count) || to % width != 0) return CUDA_ERROR_INVALID_VALUE;
  return call.enqueue(stream, [=] {
    for (size_t i = 0; i < count; ++i)
      std::memcpy(static_cast<char*>(pointer(to)) + i * width, &value, width);
    const uint64_t end = to + width * count;
    const std::lock_guard lock(fake::fake().mutex);
    auto& cleared = fake::fake().state->cleared;
    std::erase_if(cleared, [&](const auto& range) { return range.first < end && to < range.second; });
    if (value == 0) cleared.emplace_back(to, end);
    return CUDA_SUCCESS;
  });
}

}  // namespace

std::map<uint64_t, fake::Allocation>::iterator fake::State::free(
    std::map<uint64_t, Allocation>::iterator at) {
  damagedAndFreed += isDamaged(at->second);
  devices[at->second.device].used -= at->second.bytes;
  return allocations.erase(at);
}

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* memory, size_t bytes) {
  NORMC_FAKE_CALL(Context);
  if (const CUresult result = call.unsafe(); result != CUDA_SUCCESS) return result;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  fake::Device& device = call.device();
  if (bytes > device.facts.memory_bytes - device.used) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t whole = (bytes + 2 * kZone + 255) / 256 * 256;
  fake::Allocation allocation;
  allocation.storage = {static_cast<char*>(std::aligned_alloc(256, whole)), std::free};
  char* const storage = allocation.storage.get();
  if (!storage) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(storage, kZoneByte, whole);
  std::memset(storage + kZone, kPoisonByte, bytes);
  device.used += bytes;
  allocation.begin = reinterpret_cast<uint64_t>(storage + kZone);
  allocation.bytes = bytes;
  allocation.context = call.context();
  allocation.device = call.context()->device;
  allocation.serial = ++call->serial;
  *memory = allocation.begin;
  call->allocations[reinterpret_cast<uint64_t>(storage)] = std::move(allocation);
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr memory) {
  NORMC_FAKE_CALL(Context);
  if (const CUresult result = call.unsafe(); result != CUDA_SUCCESS) return result;
  fake::Allocation* const allocation = call->holds(memory, 0);
  if (!allocation || allocation->begin != memory) return CUDA_ERROR_INVALID_VALUE;
  call->free(call->allocations.find(memory - kZone));
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  NORMC_FAKE_CALL(Context);
  *total = call.device().facts.memory_bytes;
  *free = *total - call.device().used;
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  NORMC_FAKE_CALL(Context);
  return copy(call, to, 0, bytes, stream, pointer(to), from);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NORMC_FAKE_CALL(Context);
  return copy(call, from, 0, bytes, stream, to, pointer(from));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NORMC_FAKE_CALL(Context);
  return copy(call, to, from, bytes, stream, pointer(to), pointer(from));
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  NORMC_FAKE_CALL(Context);
  if (const CUresult result = call.unsafe(); result != CUDA_SUCCESS) return result;
  return copy(call, to, 0, bytes, nullptr, pointer(to), from);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  NORMC_FAKE_CALL(Context);
  if (const CUresult result = call.unsafe(); result != CUDA_SUCCESS) return result;
  return copy(call, from, 0, bytes, nullptr, to, pointer(from));
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  NORMC_FAKE_CALL(Context);
  if (const CUresult result = call.unsafe(); result != CUDA_SUCCESS) return result;
  return copy(call, to, from, bytes, nullptr, pointer(to), pointer(from));
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  NORMC_FAKE_CALL(Context);
  return fill(call, to, value, 1, count, nullptr);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  NORMC_FAKE_CALL(Context);
  return fill(call, to, value, 4, count, nullptr);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  NORMC_FAKE_CALL(Context);
  return fill(call, to, value, 1, count, stream);
}

}  // extern "C"
}  // namespace normc::cuda

using namespace normc::cuda;

extern "C" {

int fake_cuda_take_cleared(uint64_t* begin, uint64_t* end) {
  const std::lock_guard lock(fake::fake().mutex);
  auto& cleared = fake::fake().state->cleared;
  if (cleared.empty()) return 0;
  *begin = cleared.front().first;
  *end = cleared.front().second;
  cleared.erase(cleared.begin());
  return 1;
}

int fake_cuda_allocation_of(uint64_t address, fake_cuda_allocation* allocation) {
  const std::lock_guard lock(fake::fake().mutex);
  auto& allocations = fake::fake().state->allocations;
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin()) return 0;
  const fake::Allocation& found = std::prev(next)->second;
  if (address >= found.begin + found.bytes + kZone) return 0;
  *allocation = {found.begin, found.begin + found.bytes, found.device, found.serial};
  return 1;
}

size_t fake_cuda_live_allocations(void) {
  const std::lock_guard lock(fake::fake().mutex);
  return fake::fake().state->allocations.size();
}

size_t fake_cuda_damaged_allocations(void) {
  const std::lock_guard lock(fake::fake().mutex);
  const fake::State& state = *fake::fake().state;
  return state.damagedAndFreed + std::count_if(state.allocations.begin(), state.allocations.end(),
                                               [](const auto& item) { return isDamaged(item.second); });
}

}  // extern "C"
