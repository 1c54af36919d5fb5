// The state of the fake driver: devices, objects, memory, recorded calls, faults to raise.
//
// A process has one driver, so this is the only mutable global of the project; only fake() gives access to
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "codegen/emulator/driver/DriverFunctions.h"
#include "codegen/emulator/driver/FakeCuda.h"
#include "codegen/emulator/driver/Image.h"
#include "runtime/abi/CudaLimits.h"

namespace normc::cuda {

/// Returns 90 for a compute capability of 9.0.
inline int64_t numberOf(const fake_cuda_device& facts) { return 10 * facts.major + facts.minor; }

// The objects of the driver's handles.
struct CUctx_st {
  int device = 0;
  bool primary = false;
};
struct CUmod_st {
  CUcontext context = nullptr;
  std::shared_ptr<const std::string> image;
  std::list<fake::Entry> entries;  ///< functions point into it
  /// Captured launches observe it, since they outlive the module.
  std::shared_ptr<char> loaded = std::make_shared<char>();
};
struct CUfunc_st {
  CUmodule module = nullptr;
  const fake::Entry* entry = nullptr;
  int maxDynamicShared = 0;
  bool nonPortableCluster = false;
};

/// Work of a stream; runs without the lock of the state.
using Work = std::function<CUresult()>;

struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
};
struct CUstream_st {
  CUcontext context = nullptr;
  std::unique_ptr<CUgraph_st> capture;  ///< the work captured so far; null if there is no capture
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id capturer;
  bool invalidated = false;
};
struct CUevent_st {
  CUcontext context = nullptr;
  double seconds = -1;  ///< of the last record; negative before the first
};

namespace fake {

struct Allocation {
  std::unique_ptr<char, void (*)(void*)> storage{nullptr, nullptr};  ///< red zone, bytes, red zone
  uint64_t begin = 0;
  size_t bytes = 0;
  CUcontext context = nullptr;
  int device = 0;
  uint64_t serial = 0;
};

struct Fault {
  std::string function;
  int countdown;
  CUresult result;
  bool sticky;
};

struct RecordedLaunch {
  std::string function, parameters;
  std::shared_ptr<const std::string> image;
  fake_cuda_launch launch;
};

struct Device {
  fake_cuda_device facts;
  std::unique_ptr<CUctx_st> primary;
  int retained = 0;
  size_t used = 0;
  CUresult sticky = CUDA_SUCCESS;
};

/// All state that fake_cuda_reset clears.
struct State {
  bool initialized = false;
  int driverVersion = 13000;
  std::vector<Device> devices;
  std::map<uint64_t, Allocation> allocations;  ///< by the address of the red zone
  uint64_t serial = 0;
  std::vector<std::pair<uint64_t, uint64_t>> cleared;  ///< filled with zeros, by address
  size_t damagedAndFreed = 0;
  std::map<const void*, std::unique_ptr<CUctx_st>> contexts;
  std::map<const void*, std::unique_ptr<CUmod_st>> modules;
  std::map<const void*, std::unique_ptr<CUfunc_st>> functions;
  std::map<const void*, std::unique_ptr<CUstream_st>> streams;
  std::map<const void*, std::unique_ptr<CUevent_st>> events;
  std::map<const void*, std::unique_ptr<CUgraph_st>> graphs;
  std::map<const void*, std::unique_ptr<CUgraphExec_st>> graphExecs;
  std::vector<const char*> calls;
  std::vector<RecordedLaunch> launches;
  std::list<Fault> faults;
  std::string jitLog;
  int maxThreadsPerBlock = limits::kBlockThreads;
  int largestCluster = limits::kCluster;
  fake_cuda_launcher launcher = nullptr;
  void* launcherUser = nullptr;

  State() { addDevice({9, 0, 0, 0}); }
  void addDevice(fake_cuda_device facts);
  bool isContext(CUcontext context) const;
  /// Returns the allocation that holds all of these bytes, or null.
  Allocation* holds(CUdeviceptr address, size_t bytes);
  /// Frees an allocation, and records whether its red zones are intact.
  std::map<uint64_t, Allocation>::iterator free(std::map<uint64_t, Allocation>::iterator);
  void unload(CUmodule module);
  /// Destroys a context that is not primary, with all its resources.
  void destroy(CUcontext context);
};

struct Fake {
  std::mutex mutex;          ///< guards state
  std::mutex launcherMutex;  ///< one launch at a time
  std::atomic<bool> recording = true;
  std::atomic<uint64_t> generation = 1;  ///< counts resets
  std::unique_ptr<State> state = std::make_unique<State>();
};
Fake& fake();

/// Returns the contexts that a thread has pushed.
std::vector<CUcontext>& contextStack();
inline CUcontext currentContext() {
  const auto& stack = contextStack();
  return stack.empty() ? nullptr : stack.back();
}

/// Returns the mode in which a thread treats captures.
CUstreamCaptureMode& captureMode();

/// One call of the driver: holds the lock, records itself, and fails if a test requires it. `context`: a
/// current context is required.
class Call {
 public:
  enum Needs { Nothing, Init, Context };
  Call(const char* function, Needs needs);

  /// Returns the result that the function must return at once, unless it is CUDA_SUCCESS.
  CUresult refused() const { return refused_; }
  State* operator->() { return fake().state.get(); }
  State& state() { return *fake().state; }
  CUcontext context() const { return currentContext(); }
  Device& device() { return state().devices[context()->device]; }

  /// Refuses calls that are illegal while a stream is captured, and invalidates that capture.
  CUresult unsafe();
  /// Adds work to a stream: runs it now without the lock, or captures it. Ends the call.
  CUresult enqueue(CUstream stream, Work work);
  /// Returns the stream of a handle; null with `result` set if it is not a stream, or is of another context.
  /// Default streams give null and success.
  CUstream stream(CUstream handle, CUresult& result);

 private:
  std::unique_lock<std::mutex> lock_;
  CUresult refused_ = CUDA_SUCCESS;
};

}  // namespace fake

}  // namespace normc::cuda

/// Begins the body of a driver function.
#define NORMC_FAKE_CALL(needs)                                                \
  ::normc::cuda::fake::Call call(__func__, ::normc::cuda::fake::Call::needs); \
  if (const CUresult refused = call.refused(); refused != CUDA_SUCCESS) return refused
