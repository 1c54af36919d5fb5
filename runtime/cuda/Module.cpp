#include "runtime/cuda/Module.h"

#include <array>
#include <charconv>

#include "runtime/abi/CudaLimits.h"

namespace normc::runtime {

using namespace cuda;

namespace {

/// Appends the log of the driver's compiler on one line.
void appendLog(std::string_view log, Message& message) {
  log = log.substr(0, log.find('\0'));
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.remove_suffix(1);
  if (log.empty()) return;
  message << "; it says: ";
  for (size_t end; !log.empty(); log.remove_prefix(end)) {
    end = std::min(log.find('\n'), log.size());
    message << log.substr(0, end);
    if (end < log.size()) {
      message << " | ";
      ++end;
    }
  }
}

/// Returns 80 for PTX that begins with `.version 8.0`, perhaps after comments; 0 for a cubin.
int ptxVersion(std::string_view image) {
  constexpr std::string_view kVersion = ".version ";
  const size_t at = image.find(kVersion);
  if (image.starts_with("\x7f"
                        "ELF") ||
      at == image.npos)
    return 0;
  int major = 0, minor = 0;
  const char* const end = image.data() + image.size();
  const auto [dot, error] = std::from_chars(image.data() + at + kVersion.size(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return 0;
  std::from_chars(dot + 1, end, minor);
  return 10 * major + minor;
}

/// Appends which driver version is needed for the PTX, and the installed version.
void explainVersion(int version, int driverVersion, Message& message) {
  const int needed = oldestDriverForPtx(version);
  message << "; it is PTX " << version / 10 << "." << version % 10;
  if (needed) message << ", which drivers for CUDA " << Driver::versionText(needed) << " and newer read";
  message << "; this driver is for CUDA " << Driver::versionText(driverVersion);
}

/// True if the result is caused by the code, so that another kernel may do. Other results (a lost context, a
/// capture) pass, or would hit the next kernel as well, which would then be chosen for a wrong reason and
/// give other bits.
bool isOfTheCode(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
      return true;
    default:
      return false;
  }
}

/// As Driver::check, but returns kUnfit if the result is caused by the code.
template <typename... Parts>
normc_status check(const Driver& driver, CUresult result, const Parts&... doing) {
  const normc_status status = driver.check(result, doing...);
  return isOfTheCode(result) ? kUnfit : status;
}

/// The same for an attribute: a value beyond the device's limits gives CUDA_ERROR_INVALID_VALUE.
template <typename... Parts>
normc_status checkRoom(const Driver& driver, CUresult result, const Parts&... doing) {
  const normc_status status = check(driver, result, doing...);
  return result == CUDA_ERROR_INVALID_VALUE ? kUnfit : status;
}

}  // namespace

normc_status Module::load(const std::shared_ptr<const Device>& device, const std::string& what,
                          const char* image, std::shared_ptr<const Module>& module) {
  const Device::Aside guard(*device);
  NORMC_TRY(guard.status());
  const Driver& driver = device->driver();
  std::array<char, 2048> log = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  std::shared_ptr<Module> made(new Module(device, what));
  const CUresult result =
      driver->cuModuleLoadDataEx(&made->handle_, image, std::size(options), options, values);
  if (result != CUDA_SUCCESS) {
    made->handle_ = nullptr;
    Message message;
    message << "loading " << what << " on " << device->label() << " failed: ";
    driver.explain(result, message);
    if (const int version = ptxVersion(image); result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION && version)
      explainVersion(version, driver.version(), message);
    appendLog({log.data(), log.size()}, message);
    return setLastError(isOfTheCode(result) ? kUnfit : Driver::statusOf(result), message);
  }
  module = std::move(made);
  return NORMC_OK;
}

Module::~Module() {
  if (!handle_) return;
  const Device::Aside guard(*device_);
  if (guard.isCurrent()) device_->driver()->cuModuleUnload(handle_);
}

normc_status Module::function(const std::string& symbol, const Launch& launch, CUfunction& function) const {
  const Device::Aside guard(*device_);
  NORMC_TRY(guard.status());
  const Driver& driver = device_->driver();
  const CUresult found = driver->cuModuleGetFunction(&function, handle_, symbol.c_str());
  if (found == CUDA_ERROR_NOT_FOUND)
    return fail(NORMC_DATA_LOSS, what_, " is damaged: it has no entry '", symbol, "'");
  NORMC_TRY(check(driver, found, "finding '", symbol, "' in ", what_));
  // The driver may load functions lazily at their first launch, which would be during execute.
  if (driver->cuFuncLoad) NORMC_TRY(check(driver, driver->cuFuncLoad(function), "loading '", symbol, "'"));

  int threads = 0;
  NORMC_TRY(check(driver,
                  driver->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
                  "asking how many threads '", symbol, "' may have"));
  if (launch.threads > threads)
    return fail(kUnfit, "'", symbol, "' is launched with ", launch.threads,
                " threads a block; its registers leave room for ", threads, " on ", device_->label());
  if (launch.shared > 0)
    NORMC_TRY(checkRoom(driver,
                        driver->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                   int(launch.shared)),
                        "asking for ", launch.shared, " bytes of shared memory for '", symbol, "'"));
  if (launch.cluster > limits::kPortableCluster)
    NORMC_TRY(checkRoom(
        driver, driver->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
        "asking for clusters of ", launch.cluster, " blocks for '", symbol, "'"));
  return NORMC_OK;
}

normc_status Module::checkCluster(const std::string& symbol, const Launch& launch,
                                  CUfunction function) const {
  const Device::Aside guard(*device_);
  NORMC_TRY(guard.status());
  const Driver& driver = device_->driver();
  if (!driver->cuOccupancyMaxActiveClusters) return NORMC_OK;
  CUlaunchAttribute attribute = {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {}, {}};
  const auto blocks = unsigned(launch.cluster);
  attribute.value.clusterDim = {blocks, 1, 1};
  const CUlaunchConfig config = {
      blocks, 1, 1, unsigned(launch.threads), 1, 1, unsigned(launch.shared), nullptr, &attribute, 1};
  int clusters = 0;
  NORMC_TRY(check(driver, driver->cuOccupancyMaxActiveClusters(&clusters, function, &config),
                  "asking how many clusters of '", symbol, "' the device holds"));
  if (clusters > 0) return NORMC_OK;
  return fail(kUnfit, "'", symbol, "' is launched in clusters of ", launch.cluster, " blocks, each of ",
              launch.threads, " threads and ", launch.shared, " bytes of dynamic shared memory; ",
              device_->label(),
              " has room for none: compile for it with a smaller 'cluster', or for any number of features");
}

normc_status Module::checkTogether(const std::string& symbol, const Launch& launch, int64_t blocks,
                                   CUfunction function) const {
  const Device::Aside guard(*device_);
  NORMC_TRY(guard.status());
  const Driver& driver = device_->driver();
  int each = 0;
  NORMC_TRY(check(driver,
                  driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, function, int(launch.threads),
                                                                      size_t(launch.shared)),
                  "asking how many blocks of '", symbol, "' a multiprocessor holds"));
  const int64_t multiprocessors = device_->facts().multiprocessors, most = each * multiprocessors;
  if (blocks <= most) return NORMC_OK;
  return fail(kUnfit, "'", symbol, "' is launched with ", blocks, " blocks that wait for each other; ",
              device_->label(), " holds ", most, " of them at once, ", each, " on each of ", multiprocessors,
              " multiprocessors: compile for it with a smaller 'grid' or fewer 'chunks', or with a streamed "
              "schedule");
}

}  // namespace normc::runtime
