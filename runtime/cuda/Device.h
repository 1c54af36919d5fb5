// One CUDA device for plans, with the context that their code is loaded in.
//
// It is the context that is current on the thread that makes the plan, if it is a context of this device;
// otherwise it is the device's primary context, which all other libraries of the process use. A stream has to
// belong to the same context.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/core/MemoryBlock.h"
#include "runtime/cuda/Arch.h"
#include "runtime/cuda/Driver.h"

namespace normc::runtime {

class Module;

/// The properties that decide which kernels a device can run.
struct DeviceFacts {
  int ordinal = 0;
  cuda::CUdevice handle = 0;
  std::string name;
  Arch arch;                   ///< without a suffix
  int64_t sharedPerBlock = 0;  ///< dynamic, if asked for
  int64_t multiprocessors = 0;

  static normc_status read(const Driver& driver, int ordinal, DeviceFacts& facts);
  std::string label() const { return "cuda:" + std::to_string(ordinal); }
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  /// Returns the context for the calling thread. `retained`: it is the primary context, which this object
  /// then releases.
  static normc_status contextOf(const Driver& driver, const DeviceFacts& facts, cuda::CUcontext& context,
                                bool& retained);

  Device(std::shared_ptr<const Driver> driver, DeviceFacts facts, cuda::CUcontext context, bool retained);
  ~Device();
  Device(const Device&) = delete;

  const Driver& driver() const { return *driver_; }
  const DeviceFacts& facts() const { return facts_; }
  cuda::CUcontext context() const { return context_; }
  const std::string& label() const { return label_; }  ///< "cuda:0"

  /// Makes the context current on this thread during its lifetime, then restores the previous context.
  class Guard {
   public:
    explicit Guard(const Device& device);
    ~Guard();
    Guard(const Guard&) = delete;
    normc_status status() const;
    /// False if the context is lost with all its resources; then another context is current.
    bool isCurrent() const { return result_ == cuda::CUDA_SUCCESS; }

   private:
    const Device& device_;
    bool pushed_ = false;
    cuda::CUresult result_;
  };

  /// A Guard for operations outside of any stream: loading code and allocating memory. They are illegal
  /// during a capture and would invalidate it, so the thread's capture mode is relaxed.
  class Aside : public Guard {
   public:
    explicit Aside(const Device& device);
    ~Aside();

   private:
    const Driver& driver_;
    cuda::CUstreamCaptureMode mode_ = cuda::CU_STREAM_CAPTURE_MODE_RELAXED;
    bool exchanged_;
  };

  /// Refuses a stream of another context, if the driver can detect it. Requires a Guard.
  normc_status checkStream(cuda::CUstream stream) const;

  /// Loads code; every plan shares one object for the same code. `key` is the hash of `image`.
  normc_status load(const std::string& key, const std::string& what, const char* image,
                    std::shared_ptr<const Module>& module) const;

  // They create their own guard, and wait until a copy is complete.
  normc_status allocate(size_t bytes, std::unique_ptr<MemoryBlock>& memory) const;
  normc_status toDevice(void* to, const void* from, size_t bytes) const;
  normc_status toHost(void* to, const void* from, size_t bytes) const;

 private:
  normc_status refuseStream(cuda::CUcontext other) const;

  std::shared_ptr<const Driver> driver_;
  DeviceFacts facts_;
  cuda::CUcontext context_;
  bool retained_;
  std::string label_;
  mutable std::mutex mutex_;  // guards modules_; never taken by execute
  mutable std::map<std::string, std::weak_ptr<const Module>> modules_;
};

}  // namespace normc::runtime
