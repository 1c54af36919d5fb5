#include "codegen/emulator/driver/State.h"

#include <algorithm>

namespace normc::cuda::fake {
namespace {

bool isFatal(const State& state, CUcontext context, CUresult& result) {
  if (!context || !state.isContext(context)) return false;
  result = state.devices[context->device].sticky;
  return result != CUDA_SUCCESS;
}

}  // namespace

Fake& fake() {
  static Fake instance;
  return instance;
}

namespace {

/// The part of the driver's state that belongs to a thread.
struct Thread {
  uint64_t generation = 0;
  std::vector<CUcontext> contexts;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};

Thread& thread() {
  static thread_local Thread thread;
  if (const uint64_t now = fake().generation; thread.generation != now)
    thread = {.generation = now};  // the state was reset
  return thread;
}

}  // namespace

std::vector<CUcontext>& contextStack() { return thread().contexts; }
CUstreamCaptureMode& captureMode() { return thread().mode; }

void State::addDevice(fake_cuda_device facts) {
  if (facts.multiprocessors == 0) facts.multiprocessors = 132;
  if (facts.memory_bytes == 0) facts.memory_bytes = size_t{1} << 30;
  Device& device = devices.emplace_back();
  device.facts = facts;
  device.primary = std::make_unique<CUctx_st>(CUctx_st{static_cast<int>(devices.size()) - 1, true});
}

bool State::isContext(CUcontext context) const {
  if (contexts.contains(context)) return true;
  return std::any_of(devices.begin(), devices.end(), [&](const Device& device) {
    return device.primary.get() == context && device.retained > 0;
  });
}

void State::destroy(CUcontext context) {
  const auto isIn = [&](const auto& item) { return item.second->context == context; };
  for (auto at = allocations.begin(); at != allocations.end();)
    at = at->second.context == context ? free(at) : std::next(at);
  for (auto at = modules.begin(); at != modules.end();) {
    const auto module = (at++)->second.get();
    if (module->context == context) unload(module);
  }
  std::erase_if(streams, isIn);
  std::erase_if(events, isIn);
  contexts.erase(context);
}

Allocation* State::holds(CUdeviceptr address, size_t bytes) {
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin()) return nullptr;
  Allocation& allocation = std::prev(next)->second;
  const bool inside = address >= allocation.begin && address - allocation.begin <= allocation.bytes &&
                      bytes <= allocation.bytes - (address - allocation.begin);
  return inside ? &allocation : nullptr;
}

Call::Call(const char* function, Needs needs) : lock_(fake().mutex, std::defer_lock) {
  lock_.lock();
  State& state = *fake().state;
  if (fake().recording) state.calls.push_back(function);
  for (auto fault = state.faults.begin(); fault != state.faults.end(); ++fault) {
    if (fault->function != function || --fault->countdown > 0) continue;
    refused_ = fault->result;
    if (fault->sticky && !state.devices.empty()) {
      const CUcontext context = currentContext();
      state.devices[context && state.isContext(context) ? context->device : 0].sticky = refused_;
    }
    state.faults.erase(fault);
    return;
  }
  if (needs == Nothing) return;
  const CUcontext current = currentContext();
  if (!state.initialized)
    refused_ = CUDA_ERROR_NOT_INITIALIZED;
  else if (isFatal(state, current, refused_) || needs == Init)
    return;
  else if (!current)
    refused_ = CUDA_ERROR_INVALID_CONTEXT;
  else if (!state.isContext(current))
    refused_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult Call::unsafe() {
  CUresult result = CUDA_SUCCESS;
  for (auto& [handle, stream] : state().streams) {
    const bool own = stream->capturer == std::this_thread::get_id();
    const bool forbids =
        own ? stream->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                  captureMode() != CU_STREAM_CAPTURE_MODE_RELAXED
            : stream->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && captureMode() == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!stream->capture || !forbids) continue;
    stream->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUstream Call::stream(CUstream handle, CUresult& result) {
  result = CUDA_SUCCESS;
  if (reinterpret_cast<uintptr_t>(handle) <= kPerThreadStream) {
    // The legacy stream waits for all others, which is illegal during a capture.
    for (auto& [key, stream] : state().streams)
      if (stream->capture && stream->mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
        stream->invalidated = true;
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      }
    return nullptr;
  }
  const auto found = state().streams.find(handle);
  if (found == state().streams.end() || found->second->context != context()) {
    result = CUDA_ERROR_INVALID_HANDLE;
    return nullptr;
  }
  if (found->second->invalidated) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return found->second.get();
}

CUresult Call::enqueue(CUstream handle, Work work) {
  CUresult result;
  const CUstream stream = this->stream(handle, result);
  if (result != CUDA_SUCCESS) return result;
  if (stream && stream->capture) {
    stream->capture->work.push_back(std::move(work));
    return CUDA_SUCCESS;
  }
  lock_.unlock();
  return work();
}

}  // namespace normc::cuda::fake
