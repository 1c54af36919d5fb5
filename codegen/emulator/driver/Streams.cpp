// Streams, events, and graphs captured from a stream.
#include <chrono>

#include "codegen/emulator/driver/State.h"

namespace normc::cuda {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Moves `made` into a map of live objects and returns its handle.
template <typename T>
T* keep(std::map<const void*, std::unique_ptr<T>>& objects, std::unique_ptr<T> made) {
  T* const handle = made.get();
  objects[handle] = std::move(made);
  return handle;
}

/// Returns the stream of a handle, for calls that are illegal while it is captured.
CUresult waitable(fake::Call& call, CUstream handle) {
  CUresult result;
  const CUstream stream = call.stream(handle, result);
  if (result != CUDA_SUCCESS || !stream || !stream->capture) return result;
  stream->invalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  NORMC_FAKE_CALL(Context);
  if (flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<CUstream_st>();
  made->context = call.context();
  *stream = keep(call->streams, std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  NORMC_FAKE_CALL(Context);
  return call->streams.erase(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  const bool special = reinterpret_cast<uintptr_t>(stream) <= kPerThreadStream;
  if (!fake::fake().recording) {
    *context = special ? fake::currentContext() : stream->context;
    return CUDA_SUCCESS;
  }
  NORMC_FAKE_CALL(Context);
  if (!special && !call->streams.contains(stream)) return CUDA_ERROR_INVALID_HANDLE;
  *context = special ? call.context() : stream->context;
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
  NORMC_FAKE_CALL(Context);
  return waitable(call, stream);
}

CUresult cuStreamQuery(CUstream stream) {
  NORMC_FAKE_CALL(Context);
  return waitable(call, stream);
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  NORMC_FAKE_CALL(Context);
  const auto found = call->streams.find(handle);
  const CUstream stream = found == call->streams.end() ? nullptr : found->second.get();
  *status = !stream || !stream->capture ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->invalidated       ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  NORMC_FAKE_CALL(Nothing);
  if (*mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, fake::captureMode());
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  NORMC_FAKE_CALL(Context);
  const auto found = call->streams.find(handle);
  if (found == call->streams.end()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;  // also for default streams
  CUstream_st& stream = *found->second;
  if (stream.capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream.capture = std::make_unique<CUgraph_st>();
  stream.mode = mode;
  stream.capturer = std::this_thread::get_id();
  stream.invalidated = false;
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  NORMC_FAKE_CALL(Context);
  *graph = nullptr;
  const auto found = call->streams.find(handle);
  if (found == call->streams.end() || !found->second->capture) return CUDA_ERROR_INVALID_VALUE;
  CUstream_st& stream = *found->second;
  std::unique_ptr<CUgraph_st> captured = std::move(stream.capture);
  const bool spoilt = stream.invalidated;
  stream.invalidated = false;
  if (spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = keep(call->graphs, std::move(captured));
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  NORMC_FAKE_CALL(Context);
  if (!call->graphs.contains(graph)) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<CUgraphExec_st>();
  made->work = graph->work;
  *exec = keep(call->graphExecs, std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  NORMC_FAKE_CALL(Context);
  if (!call->graphExecs.contains(exec)) return CUDA_ERROR_INVALID_VALUE;
  return call.enqueue(stream, [work = exec->work] {
    for (const Work& one : work)
      if (const CUresult result = one(); result != CUDA_SUCCESS) return result;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  NORMC_FAKE_CALL(Init);
  return call->graphExecs.erase(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroy(CUgraph graph) {
  NORMC_FAKE_CALL(Init);
  return call->graphs.erase(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  NORMC_FAKE_CALL(Context);
  auto made = std::make_unique<CUevent_st>();
  made->context = call.context();
  *event = keep(call->events, std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  NORMC_FAKE_CALL(Context);
  return call->events.erase(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  NORMC_FAKE_CALL(Context);
  if (!call->events.contains(event) || event->context != call.context()) return CUDA_ERROR_INVALID_HANDLE;
  return call.enqueue(stream, [event] {
    const std::lock_guard lock(fake::fake().mutex);
    const auto found = fake::fake().state->events.find(event);
    if (found != fake::fake().state->events.end()) found->second->seconds = now();
    return CUDA_SUCCESS;
  });
}

CUresult cuEventSynchronize(CUevent event) {
  NORMC_FAKE_CALL(Context);
  return call->events.contains(event) ? call.unsafe() : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  NORMC_FAKE_CALL(Context);
  if (!call->events.contains(from) || !call->events.contains(to) || from->seconds < 0 || to->seconds < 0)
    return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = static_cast<float>((to->seconds - from->seconds) * 1e3);
  return CUDA_SUCCESS;
}

}  // extern "C"
}  // namespace normc::cuda
