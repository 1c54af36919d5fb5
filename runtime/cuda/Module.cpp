#include "runtime/cuda/Module.h"

#include <array>

namespace normc::runtime {

using namespace cuda;

namespace {

/// What the driver's compiler wrote, on one line.
void appendLog(std::string_view log, Message& message) {
  log = log.substr(0, log.find('\0'));
  while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.remove_suffix(1);
  if (log.empty()) return;
  message << "; it says: ";
  for (size_t end; !log.empty(); log.remove_prefix(end)) {
    end = std::min(log.find('\n'), log.size());
    message << log.substr(0, end);
    if (end < log.size()) message << " | ", ++end;
  }
}

}  // namespace

normc_status Module::load(std::shared_ptr<const Device> device, const std::string& what, const char* image,
                          std::shared_ptr<const Module>& module) {
  const Device::Guard guard(*device);
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
    appendLog({log.data(), log.size()}, message);
    return setLastError(
        result == CUDA_ERROR_OUT_OF_MEMORY ? NORMC_RESOURCE_EXHAUSTED : NORMC_FAILED_PRECONDITION, message);
  }
  module = std::move(made);
  return NORMC_OK;
}

Module::~Module() {
  if (!handle_) return;
  const Device::Guard guard(*device_);
  device_->driver()->cuModuleUnload(handle_);
}

normc_status Module::function(const std::string& symbol, const Launch& launch, CUfunction& function) const {
  const Device::Guard guard(*device_);
  NORMC_TRY(guard.status());
  const Driver& driver = device_->driver();
  const CUresult found = driver->cuModuleGetFunction(&function, handle_, symbol.c_str());
  if (found == CUDA_ERROR_NOT_FOUND)
    return fail(NORMC_DATA_LOSS, what_, " is damaged: it has no entry `", symbol, "`");
  NORMC_TRY(driver.check(found, "finding `", symbol, "` in ", what_));
  // Modules may be loaded lazily, a function at its first launch: that would be in execute.
  if (driver->cuFuncLoad) NORMC_TRY(driver.check(driver->cuFuncLoad(function), "loading `", symbol, "`"));

  int threads = 0;
  NORMC_TRY(
      driver.check(driver->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
                   "asking how many threads `", symbol, "` may have"));
  if (launch.threads > threads)
    return fail(NORMC_FAILED_PRECONDITION, "`", symbol, "` is launched with ", launch.threads,
                " threads a block; its registers leave room for ", threads, " on ", device_->label());
  if (launch.shared > 0)
    NORMC_TRY(driver.check(driver->cuFuncSetAttribute(
                               function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(launch.shared)),
                           "asking for ", launch.shared, " bytes of shared memory for `", symbol, "`"));
  constexpr int64_t kPortableCluster = 8;
  if (launch.cluster > kPortableCluster)
    NORMC_TRY(driver.check(
        driver->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
        "asking for clusters of ", launch.cluster, " blocks for `", symbol, "`"));
  return NORMC_OK;
}

normc_status Module::checkTogether(const std::string& symbol, const Launch& launch, int64_t blocks,
                                   CUfunction function) const {
  const Device::Guard guard(*device_);
  NORMC_TRY(guard.status());
  const Driver& driver = device_->driver();
  int each = 0;
  NORMC_TRY(driver.check(driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(
                             &each, function, int(launch.threads), size_t(launch.shared)),
                         "asking how many blocks of `", symbol, "` a multiprocessor holds"));
  const int64_t multiprocessors = device_->facts().multiprocessors, most = each * multiprocessors;
  if (blocks <= most) return NORMC_OK;
  return fail(NORMC_FAILED_PRECONDITION, "`", symbol, "` is launched with ", blocks,
              " blocks that wait for each other; ", device_->label(), " holds ", most, " of them at once, ",
              each, " on each of ", multiprocessors,
              " multiprocessors: compile for it with a smaller `grid` or fewer `chunks`, or with a streamed "
              "schedule");
}

}  // namespace normc::runtime
