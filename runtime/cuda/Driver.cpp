#include "runtime/cuda/Driver.h"

#include <dlfcn.h>

namespace normc::runtime {
namespace {

using namespace cuda;

struct Hint {
  int first, last;  // results
  const char* text;
};

constexpr const char* kLost =
    "an earlier kernel failed and the device's context is lost; only a new process gets another";
constexpr const char* kCapture =
    "a stream is being captured: give execute the captured stream, and do nothing else with the device "
    "meanwhile";
constexpr const char* kNoJit =
    "compile the package where ptxas is at hand, so that it holds a cubin for this device";

constexpr Hint kHints[] = {
    {CUDA_ERROR_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY,
     "this libcuda is the toolkit's stub for linking; put the driver's own before it"},
    {CUDA_ERROR_NO_DEVICE, CUDA_ERROR_NO_DEVICE, "check that a device is visible to this process"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE, kLost},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, kLost},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, kNoJit},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
     "the PTX is newer than this driver: update the driver, or compile the package where ptxas is at hand"},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, CUDA_ERROR_JIT_COMPILATION_DISABLED, kNoJit},
    {CUDA_ERROR_CONTAINED, CUDA_ERROR_CONTAINED, kLost},
    {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS, kLost},
    {CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT, kLost},
    {CUDA_ERROR_ASSERT, CUDA_ERROR_ASSERT, kLost},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_LAUNCH_FAILED, kLost},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
     "its blocks wait for each other and have to be there at once: this process has but a part of the "
     "device; give it the"
     " whole device, or compile a streamed schedule"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
     "libcuda and the kernel's module are of different versions: install one driver, or restart the machine"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, kCapture},
};

}  // namespace

std::string Driver::versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

normc_status Driver::open(const std::string& library, std::shared_ptr<const Driver>& driver) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char* reason = dlerror();
    return fail(NORMC_FAILED_PRECONDITION, "no CUDA driver: cannot load ", library, " (", reason,
                "); install the NVIDIA driver, or ask for a plan on the CPU");
  }
  const std::shared_ptr<Driver> made(new Driver());
  DriverTable& table = made->table_;
  const char* missing = nullptr;
#define NORMC_CUDA_FIND(name, parameters) \
  table.name = reinterpret_cast<decltype(table.name)>(dlsym(handle, #name));
#define NORMC_CUDA_NEED(name, parameters) \
  if (!table.name && !missing) missing = #name;
  NORMC_CUDA_DRIVER_API(NORMC_CUDA_FIND)
  NORMC_CUDA_DRIVER_API_OPTIONAL(NORMC_CUDA_FIND)
  NORMC_CUDA_DRIVER_API(NORMC_CUDA_NEED)
#undef NORMC_CUDA_FIND
#undef NORMC_CUDA_NEED

  // The version is checked first: it distinguishes an old driver from a wrong library, and does not need
  // cuInit.
  if (table.cuDriverGetVersion)
    NORMC_TRY(
        made->check(table.cuDriverGetVersion(&made->version_), "asking the CUDA driver for its version"));
  if (table.cuDriverGetVersion && made->version_ < kOldestVersion)
    return fail(NORMC_FAILED_PRECONDITION, "the CUDA driver is for CUDA ", versionText(made->version_),
                "; this runtime needs ", versionText(kOldestVersion), " or newer: update the driver");
  if (missing)
    return fail(NORMC_FAILED_PRECONDITION, library, " has no function '", missing,
                "'; it is no CUDA driver, or a damaged one");
  NORMC_TRY(made->check(table.cuInit(0), "starting the CUDA driver"));
  driver = made;
  return NORMC_OK;
}

normc_status Driver::count(int& devices) const {
  return check(table_.cuDeviceGetCount(&devices), "counting the CUDA devices");
}

normc_status Driver::device(int ordinal, CUdevice& device) const {
  int devices = 0;
  NORMC_TRY(count(devices));
  if (ordinal < 0 || ordinal >= devices)
    return fail(NORMC_INVALID_ARGUMENT, "there is no device cuda:", ordinal, "; this machine has ", devices,
                devices == 1 ? " CUDA device, number 0" : " CUDA devices, numbered from 0");
  return check(table_.cuDeviceGet(&device, ordinal), "getting cuda:", ordinal);
}

int Driver::attribute(CUdevice device, CUdevice_attribute attribute) const {
  int value = 0;
  return table_.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
}

std::string Driver::name(CUdevice device) const {
  char text[256] = "";
  if (table_.cuDeviceGetName(text, sizeof text, device) != CUDA_SUCCESS) return "unknown device";
  text[sizeof text - 1] = '\0';
  return text;
}

void Driver::explain(CUresult result, Message& message) const {
  const char* text = nullptr;
  if (table_.cuGetErrorName && table_.cuGetErrorName(result, &text) == CUDA_SUCCESS && text)
    message << text;
  else
    message << "CUDA error " << int(result);
  text = nullptr;
  if (table_.cuGetErrorString && table_.cuGetErrorString(result, &text) == CUDA_SUCCESS && text)
    message << ", " << text;
  for (const Hint& hint : kHints)
    if (hint.first <= result && result <= hint.last) message << "; " << hint.text;
}

normc_status Driver::statusOf(CUresult result) {
  return result == CUDA_ERROR_OUT_OF_MEMORY ? NORMC_RESOURCE_EXHAUSTED : NORMC_FAILED_PRECONDITION;
}

}  // namespace normc::runtime
