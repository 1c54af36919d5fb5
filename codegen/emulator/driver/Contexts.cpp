// Starting, devices, contexts, errors as text.
#include <cstdio>
#include <utility>

#include "codegen/emulator/driver/State.h"

namespace normc::cuda {
namespace {

struct ErrorText {
  CUresult result;
  const char *name, *meaning;
};

#define NORMC_FAKE_ERROR(name, meaning) {name, #name, meaning}
constexpr ErrorText kErrors[] = {
    NORMC_FAKE_ERROR(CUDA_SUCCESS, "no error"),
    NORMC_FAKE_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    NORMC_FAKE_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    NORMC_FAKE_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    NORMC_FAKE_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    NORMC_FAKE_ERROR(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
    NORMC_FAKE_ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    NORMC_FAKE_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    NORMC_FAKE_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    NORMC_FAKE_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    NORMC_FAKE_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    NORMC_FAKE_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU,
                     "no kernel image is available for execution on the device"),
    NORMC_FAKE_ERROR(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    NORMC_FAKE_ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    NORMC_FAKE_ERROR(CUDA_ERROR_NVLINK_UNCORRECTABLE, "uncorrectable NVLink error detected"),
    NORMC_FAKE_ERROR(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "PTX JIT compiler library not found"),
    NORMC_FAKE_ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                     "the provided PTX was compiled with a newer toolchain"),
    NORMC_FAKE_ERROR(CUDA_ERROR_JIT_COMPILATION_DISABLED, "PTX JIT compilation was disabled"),
    NORMC_FAKE_ERROR(CUDA_ERROR_CONTAINED, "contained error"),
    NORMC_FAKE_ERROR(CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid"),
    NORMC_FAKE_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    NORMC_FAKE_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    NORMC_FAKE_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    NORMC_FAKE_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    NORMC_FAKE_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    NORMC_FAKE_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    NORMC_FAKE_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    NORMC_FAKE_ERROR(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    NORMC_FAKE_ERROR(CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
    NORMC_FAKE_ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    NORMC_FAKE_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    NORMC_FAKE_ERROR(CUDA_ERROR_INVALID_ADDRESS_SPACE,
                     "operation not supported on global/shared address space"),
    NORMC_FAKE_ERROR(CUDA_ERROR_INVALID_PC, "invalid program counter"),
    NORMC_FAKE_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    NORMC_FAKE_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    NORMC_FAKE_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    NORMC_FAKE_ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    NORMC_FAKE_ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
                     "system has unsupported display driver / cuda driver combination"),
    NORMC_FAKE_ERROR(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
                     "forward compatibility was attempted on non supported HW"),
    NORMC_FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                     "operation not permitted when stream is capturing"),
    NORMC_FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                     "operation failed due to a previous error during capture"),
    NORMC_FAKE_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                     "operation would make the legacy stream depend on a capturing blocking stream"),
    NORMC_FAKE_ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, "invalid cluster size"),
    NORMC_FAKE_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef NORMC_FAKE_ERROR

CUresult errorText(CUresult error, const char* ErrorText::* which, const char** text) {
  for (const ErrorText& known : kErrors)
    if (known.result == error) {
      *text = known.*which;
      return CUDA_SUCCESS;
    }
  *text = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

bool isDevice(fake::Call& call, CUdevice device) {
  return device >= 0 && size_t(device) < call->devices.size();
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned flags) {
  NORMC_FAKE_CALL(Nothing);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (call->devices.empty()) return CUDA_ERROR_NO_DEVICE;
  call->initialized = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  NORMC_FAKE_CALL(Nothing);
  *version = call->driverVersion;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  return errorText(error, &ErrorText::name, text);
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  return errorText(error, &ErrorText::meaning, text);
}

CUresult cuDeviceGetCount(int* count) {
  NORMC_FAKE_CALL(Init);
  *count = static_cast<int>(call->devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  NORMC_FAKE_CALL(Init);
  if (!isDevice(call, ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  NORMC_FAKE_CALL(Init);
  if (!isDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  const fake_cuda_device& facts = call->devices[device].facts;
  std::snprintf(name, bytes, "Fake GPU (sm_%d)", 10 * facts.major + facts.minor);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* text, int bytes, CUdevice device) {
  NORMC_FAKE_CALL(Init);
  if (!isDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, bytes, "0000:%02x:00.0", device + 1);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  NORMC_FAKE_CALL(Init);
  if (!isDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  const fake_cuda_device& facts = call->devices[device].facts;
  const auto shared = int(limits::sharedOfMultiprocessor(numberOf(facts))),
             ofBlock = int(limits::sharedOfBlock(numberOf(facts)));
  const std::pair<CUdevice_attribute, int> values[] = {
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, facts.multiprocessors},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 60 << 20},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, facts.major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, facts.minor},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, shared},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, ofBlock},
  };
  for (const auto& [each, known] : values)
    if (each == attribute) {
      *value = known;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  NORMC_FAKE_CALL(Init);
  if (!isDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = call->devices[device].facts.memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  NORMC_FAKE_CALL(Init);
  if (!isDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  ++call->devices[device].retained;
  *context = call->devices[device].primary.get();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  NORMC_FAKE_CALL(Init);
  if (!isDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  if (call->devices[device].retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --call->devices[device].retained;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  NORMC_FAKE_CALL(Init);
  if (!isDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = call->devices[device].retained > 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice device) {
  NORMC_FAKE_CALL(Init);
  if (!isDevice(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  auto made = std::make_unique<CUctx_st>(CUctx_st{device, false});
  *context = made.get();
  call->contexts[made.get()] = std::move(made);
  fake::contextStack().push_back(*context);
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  NORMC_FAKE_CALL(Init);
  if (!call->contexts.contains(context)) return CUDA_ERROR_INVALID_CONTEXT;
  auto& stack = fake::contextStack();
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  call->destroy(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (!fake::fake().recording) {
    *context = fake::currentContext();
    return CUDA_SUCCESS;
  }
  NORMC_FAKE_CALL(Init);
  *context = fake::currentContext();
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  NORMC_FAKE_CALL(Init);
  if (!call->isContext(context)) return CUDA_ERROR_INVALID_CONTEXT;
  fake::contextStack().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  NORMC_FAKE_CALL(Init);
  auto& stack = fake::contextStack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  NORMC_FAKE_CALL(Context);
  *device = call.context()->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  NORMC_FAKE_CALL(Context);
  return call.unsafe();
}

}  // extern "C"
}  // namespace normc::cuda
