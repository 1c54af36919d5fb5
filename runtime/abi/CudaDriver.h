// The part of the CUDA driver API that this project uses, with its own declarations, so that building needs
// neither the toolkit nor its headers.
//
// The binary interface of libcuda.so.1 is stable: a symbol never changes its parameters, and a newer form
// gets a suffix (_v2). The names below are those of the symbols. If a cuda.h is installed, a test compares
// the two.
#pragma once

#include <cstddef>
#include <cstdint>

namespace normc::cuda {

enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
  CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
  CUDA_ERROR_CONTAINED = 226,
  CUDA_ERROR_INVALID_SOURCE = 300,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
  CUDA_ERROR_INVALID_PC = 718,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_SYSTEM_NOT_READY = 802,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
  CUDA_ERROR_UNKNOWN = 999
};

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,  // kHz
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,        // kHz
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,  // bits
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
};

enum CUfunction_attribute : int {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
};

enum CUjit_option : int { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;

// The default streams that every context has, in addition to the null stream.
inline constexpr uintptr_t kLegacyStream = 1, kPerThreadStream = 2;

// Keys of the `extra` array of a launch: all parameters in one buffer.
inline constexpr uintptr_t kLaunchBufferPointer = 1, kLaunchBufferSize = 2;

enum CUstreamCaptureMode : int {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2
};
enum CUstreamCaptureStatus : int {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2
};

enum CUlaunchAttributeID : int {
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};

struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } clusterDim;
    int cooperative;
    int programmaticStreamSerializationAllowed;
  } value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};

/// Returns the oldest driver that reads PTX of a version: 12000 (CUDA 12.0) for 80 (`.version 8.0`). The
/// table is from the release notes of the PTX ISA; 0 for versions after its end.
constexpr int oldestDriverForPtx(int version) {
  constexpr struct {
    int ptx, driver;
  } kReleases[] = {{78, 11080}, {80, 12000}, {81, 12010}, {82, 12020}, {83, 12030}, {84, 12040},
                   {85, 12050}, {86, 12070}, {87, 12080}, {88, 12090}, {90, 13000}};
  for (const auto& release : kReleases)
    if (version <= release.ptx) return release.driver;
  return 0;
}

/// The functions that the runtime calls, as X(symbol, parameters). All return a CUresult.
#define NORMC_CUDA_DRIVER_API(X)                                                                            \
  X(cuInit, (unsigned flags))                                                                               \
  X(cuDriverGetVersion, (int* version))                                                                     \
  X(cuGetErrorName, (CUresult error, const char** text))                                                    \
  X(cuGetErrorString, (CUresult error, const char** text))                                                  \
  X(cuDeviceGetCount, (int* count))                                                                         \
  X(cuDeviceGet, (CUdevice * device, int ordinal))                                                          \
  X(cuDeviceGetName, (char* name, int bytes, CUdevice device))                                              \
  X(cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device))                      \
  X(cuDeviceTotalMem_v2, (size_t* bytes, CUdevice device))                                                  \
  X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                                       \
  X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                        \
  X(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned* flags, int* active))                            \
  X(cuCtxGetCurrent, (CUcontext * context))                                                                 \
  X(cuCtxPushCurrent_v2, (CUcontext context))                                                               \
  X(cuCtxPopCurrent_v2, (CUcontext * context))                                                              \
  X(cuCtxGetDevice, (CUdevice * device))                                                                    \
  X(cuModuleLoadDataEx,                                                                                     \
    (CUmodule * module, const void* image, unsigned count, CUjit_option* options, void** values))           \
  X(cuModuleUnload, (CUmodule module))                                                                      \
  X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char* name))                        \
  X(cuFuncGetAttribute, (int* value, CUfunction_attribute attribute, CUfunction function))                  \
  X(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value))                   \
  X(cuLaunchKernel,                                                                                         \
    (CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY, \
     unsigned blockZ, unsigned sharedBytes, CUstream stream, void** parameters, void** extra))              \
  X(cuLaunchKernelEx, (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra)) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                            \
    (int* blocks, CUfunction function, int threads, size_t sharedBytes))                                    \
  X(cuMemAlloc_v2, (CUdeviceptr * memory, size_t bytes))                                                    \
  X(cuMemFree_v2, (CUdeviceptr memory))                                                                     \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))                \
  X(cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, size_t bytes, CUstream stream))                      \
  X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                \
  X(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))                  \
  X(cuStreamSynchronize, (CUstream stream))                                                                 \
  X(cuStreamGetCtx, (CUstream stream, CUcontext * context))                                                 \
  X(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status))                                 \
  X(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode))

/// The same for functions that an older driver may lack.
#define NORMC_CUDA_DRIVER_API_OPTIONAL(X)                                          \
  X(cuOccupancyMaxActiveClusters,                                                  \
    (int* clusters, CUfunction function, const CUlaunchConfig* config)) /* 11.8 */ \
  X(cuFuncLoad, (CUfunction function))                                  /* 12.4 */

/// The functions of an open driver.
struct DriverTable {
#define NORMC_CUDA_MEMBER(name, parameters) CUresult(*name) parameters = nullptr;
  NORMC_CUDA_DRIVER_API(NORMC_CUDA_MEMBER)
  NORMC_CUDA_DRIVER_API_OPTIONAL(NORMC_CUDA_MEMBER)
#undef NORMC_CUDA_MEMBER
};

// ------------------------------------------------------------------- hosts --
// Functions that tests and benchmarks use without the toolkit. The runtime calls none of them.

using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;

enum CUstream_flags : unsigned { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };

/// As NORMC_CUDA_DRIVER_API.
#define NORMC_CUDA_HOST_API(X)                                                                  \
  X(cuDeviceGetPCIBusId, (char* text, int bytes, CUdevice device))                              \
  X(cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device))                     \
  X(cuCtxDestroy_v2, (CUcontext context))                                                       \
  X(cuCtxSynchronize, ())                                                                       \
  X(cuModuleLoadData, (CUmodule * module, const void* image))                                   \
  X(cuMemGetInfo_v2, (size_t* free, size_t* total))                                             \
  X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void* from, size_t bytes))                          \
  X(cuMemcpyDtoH_v2, (void* to, CUdeviceptr from, size_t bytes))                                \
  X(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes))                          \
  X(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t count))                         \
  X(cuMemsetD32_v2, (CUdeviceptr to, unsigned value, size_t count))                             \
  X(cuStreamCreate, (CUstream * stream, unsigned flags))                                        \
  X(cuStreamDestroy_v2, (CUstream stream))                                                      \
  X(cuStreamQuery, (CUstream stream))                                                           \
  X(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))                       \
  X(cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                     \
  X(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags)) \
  X(cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                         \
  X(cuGraphExecDestroy, (CUgraphExec exec))                                                     \
  X(cuGraphDestroy, (CUgraph graph))                                                            \
  X(cuEventCreate, (CUevent * event, unsigned flags))                                           \
  X(cuEventDestroy_v2, (CUevent event))                                                         \
  X(cuEventRecord, (CUevent event, CUstream stream))                                            \
  X(cuEventSynchronize, (CUevent event))                                                        \
  X(cuEventElapsedTime, (float* milliseconds, CUevent from, CUevent to))

}  // namespace normc::cuda
