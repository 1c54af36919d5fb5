// Modules, their functions, and launches: checked like the real driver does, recorded, and passed to the
// launcher.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "codegen/emulator/driver/State.h"

namespace normc::cuda {
namespace {

/// Returns the length of an image that was passed without it: text up to its zero, or the extent of the
/// headers of an ELF file.
size_t imageBytes(const char* image) {
  if (std::memcmp(image,
                  "\x7f"
                  "ELF",
                  4) != 0)
    return std::strlen(image);
  uint64_t sections;
  uint16_t entryBytes, count;
  std::memcpy(&sections, image + 0x28, sizeof sections);
  std::memcpy(&entryBytes, image + 0x3a, sizeof entryBytes);
  std::memcpy(&count, image + 0x3c, sizeof count);
  uint64_t end = sections + uint64_t{entryBytes} * count;
  for (int i = 0; i < count; ++i) {
    const char* const section = image + sections + uint64_t{entryBytes} * i;
    uint32_t type;
    uint64_t offset, bytes;
    std::memcpy(&type, section + 4, sizeof type);
    std::memcpy(&offset, section + 0x18, sizeof offset);
    std::memcpy(&bytes, section + 0x20, sizeof bytes);
    constexpr uint32_t kNoBits = 8;
    if (type != kNoBits) end = std::max(end, offset + bytes);
  }
  return end;
}

/// Returns why a device cannot load an image, or CUDA_SUCCESS. A text instead of a cubin, as in tests, begins
/// with the name of its architecture.
CUresult loadable(const std::string& image, const fake_cuda_device& device, int driverVersion) {
  const int number = 10 * device.major + device.minor;
  if (fake::isPtx(image)) {
    const int oldest = oldestDriverForPtx(fake::versionOf(image));
    if (oldest == 0 || oldest > driverVersion) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    return fake::targetOf(image) <= number ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  if (image.starts_with("\x7f"
                        "ELF"))
    return CUDA_SUCCESS;
  if (!image.starts_with("sm_")) return CUDA_ERROR_INVALID_IMAGE;
  const int arch = std::atoi(image.c_str() + 3);
  const bool fits = arch / 10 == device.major && arch % 10 <= device.minor;
  return fits ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult load(fake::Call& call, CUmodule* module, const void* image) {
  if (const CUresult result = call.unsafe(); result != CUDA_SUCCESS) return result;
  if (!image) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<CUmod_st>();
  made->context = call.context();
  const auto* const bytes = static_cast<const char*>(image);
  const std::string& text =
      *(made->image = std::make_shared<const std::string>(bytes, bytes + imageBytes(bytes)));
  if (const CUresult result = loadable(text, call.device().facts, call->driverVersion);
      result != CUDA_SUCCESS)
    return result;
  if (fake::isPtx(text))
    for (fake::Entry& entry : fake::entriesOf(text)) made->entries.push_back(std::move(entry));
  *module = made.get();
  call->modules[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

void writeLog(const std::string& log, unsigned count, const CUjit_option* options, void** values) {
  char* buffer = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffer = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) bytes = reinterpret_cast<size_t>(values[i]);
  }
  if (!buffer || bytes == 0) return;
  const size_t length = std::min(log.size(), bytes - 1);
  std::memcpy(buffer, log.data(), length);
  buffer[length] = '\0';
}

/// Bytes of shared memory that a block has without asking for more.
constexpr int kSharedUnasked = 48 << 10;

struct Launch {
  unsigned grid[3], block[3], cluster[3] = {1, 1, 1};
  unsigned shared;
  CUstream stream;
  bool dependent = false, cooperative = false;
};

/// Returns the blocks that fit on one multiprocessor, without the limit of registers, which are not known
/// here.
int residentBlocks(const fake_cuda_device& facts, const fake::Entry& entry, uint64_t threads,
                   size_t dynamicBytes) {
  const auto shared = size_t(limits::sharedOfMultiprocessor(numberOf(facts)));
  const auto byShared = int(shared / (entry.sharedBytes + dynamicBytes + limits::kSystemShared));
  return std::min({int(2048 / threads), byShared, 32});
}

CUresult checkShape(fake::Call& call, const CUfunc_st& function, const Launch& launch) {
  const fake::Entry& entry = *function.entry;
  for (int i = 0; i < 3; ++i)
    if (launch.grid[i] == 0 || launch.block[i] == 0 || launch.cluster[i] == 0)
      return CUDA_ERROR_INVALID_VALUE;
  const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (launch.grid[0] > limits::kGridX || launch.grid[1] > limits::kGridY || launch.grid[2] > limits::kGridY ||
      threads > limits::kBlockThreads)
    return CUDA_ERROR_INVALID_VALUE;
  if (threads > uint64_t(call->maxThreadsPerBlock)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if ((entry.threads && threads != uint64_t(entry.threads)) ||
      (entry.maxThreads && threads > uint64_t(entry.maxThreads)))
    return CUDA_ERROR_INVALID_VALUE;
  if (launch.shared > unsigned(function.maxDynamicShared)) return CUDA_ERROR_INVALID_VALUE;
  if (launch.dependent && call.device().facts.major < 9) return CUDA_ERROR_NOT_SUPPORTED;
  const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const int multiprocessors = call.device().facts.multiprocessors;
  const auto together = uint64_t(residentBlocks(call.device().facts, entry, threads, launch.shared)) *
                        uint64_t(multiprocessors);
  if (launch.cooperative && blocks > together) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  const unsigned cluster = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
  if (entry.cluster && cluster != unsigned(entry.cluster)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  if (cluster == 1) return CUDA_SUCCESS;
  if (call.device().facts.major < 9) return CUDA_ERROR_NOT_SUPPORTED;
  if (cluster > unsigned(call->largestCluster) ||
      (cluster > limits::kPortableCluster && !function.nonPortableCluster) ||
      launch.grid[0] % launch.cluster[0] != 0)
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  return CUDA_SUCCESS;
}

/// Returns the parameters as one buffer, from either form of passing them.
CUresult gather(const fake::Entry& entry, void** parameters, void** extra, std::string& bytes) {
  if (parameters) {
    if (!entry.declared) return CUDA_SUCCESS;  // only the buffer form has the length
    bytes.assign(entry.parameterBytes, '\0');
    for (size_t i = 0; i < entry.parameters.size(); ++i)
      std::memcpy(&bytes[entry.parameters[i].offset], parameters[i], entry.parameters[i].bytes);
    return CUDA_SUCCESS;
  }
  const void* buffer = nullptr;
  size_t length = 0;
  for (size_t i = 0; extra && extra[i]; i += 2) {
    const auto kind = reinterpret_cast<uintptr_t>(extra[i]);
    if (kind == kLaunchBufferPointer) buffer = extra[i + 1];
    if (kind == kLaunchBufferSize) length = *static_cast<size_t*>(extra[i + 1]);
  }
  if (entry.declared && length != entry.parameterBytes) return CUDA_ERROR_INVALID_VALUE;
  if (length > 0) bytes.assign(static_cast<const char*>(buffer), length);
  return CUDA_SUCCESS;
}

/// Records a launch and runs it. An error of the launcher becomes the context's sticky error.
CUresult run(const fake::RecordedLaunch& recorded) {
  fake::Fake& fake = fake::fake();
  fake::RecordedLaunch launch = recorded;
  launch.launch.function = launch.function.c_str();
  launch.launch.image = launch.image->c_str();
  launch.launch.parameters = launch.parameters.data();
  fake_cuda_launcher launcher;
  void* user;
  {
    const std::lock_guard lock(fake.mutex);
    launcher = fake.state->launcher;
    user = fake.state->launcherUser;
    if (fake.recording) fake.state->launches.push_back(launch);
  }
  if (!launcher) return CUDA_SUCCESS;
  const std::lock_guard one(fake.launcherMutex);
  const int result = launcher(user, &launch.launch);
  if (result == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(fake.mutex);
  fake.state->devices[launch.launch.device].sticky = CUresult(result);
  return CUDA_SUCCESS;
}

CUresult enqueue(fake::Call& call, CUfunction function, const Launch& launch, void** parameters,
                 void** extra) {
  if (!call->functions.contains(function)) return CUDA_ERROR_INVALID_HANDLE;
  if (function->module->context != call.context()) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = checkShape(call, *function, launch); result != CUDA_SUCCESS) return result;
  constexpr int kGraphsHaveDependences = 12030;
  const auto stream = call->streams.find(launch.stream);
  if (launch.dependent && call->driverVersion < kGraphsHaveDependences && stream != call->streams.end() &&
      stream->second->capture)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  fake::RecordedLaunch recorded;
  if (const CUresult result = gather(*function->entry, parameters, extra, recorded.parameters);
      result != CUDA_SUCCESS)
    return result;
  recorded.function = function->entry->name;
  recorded.image = function->module->image;
  fake_cuda_launch& to = recorded.launch;
  to = {};
  std::copy_n(launch.grid, 3, to.grid);
  std::copy_n(launch.block, 3, to.block);
  std::copy_n(launch.cluster, 3, to.cluster);
  to.shared_bytes = launch.shared;
  to.image_bytes = recorded.image->size();
  to.parameter_bytes = recorded.parameters.size();
  to.device = call.context()->device;
  to.stream = launch.stream;
  to.dependent = launch.dependent;
  to.cooperative = launch.cooperative;
  return call.enqueue(launch.stream,
                      [recorded = std::move(recorded), loaded = std::weak_ptr(function->module->loaded)] {
                        return loaded.expired() ? CUDA_ERROR_INVALID_HANDLE : run(recorded);
                      });
}

}  // namespace

void fake::State::unload(CUmodule module) {
  std::erase_if(functions, [&](const auto& item) { return item.second->module == module; });
  modules.erase(module);
}

extern "C" {

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                            void** values) {
  fake::Call call(__func__, fake::Call::Context);
  const CUresult result = call.refused() != CUDA_SUCCESS ? call.refused() : load(call, module, image);
  if (result != CUDA_SUCCESS) writeLog(call->jitLog, count, options, values);
  return result;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  NORMC_FAKE_CALL(Context);
  return load(call, module, image);
}

CUresult cuModuleUnload(CUmodule module) {
  NORMC_FAKE_CALL(Context);
  if (const CUresult result = call.unsafe(); result != CUDA_SUCCESS) return result;
  if (!call->modules.contains(module)) return CUDA_ERROR_INVALID_HANDLE;
  call->unload(module);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  NORMC_FAKE_CALL(Context);
  if (!call->modules.contains(module)) return CUDA_ERROR_INVALID_HANDLE;
  auto& entries = module->entries;
  const auto isIt = [&](const fake::Entry& entry) { return entry.name == name; };
  auto entry = std::find_if(entries.begin(), entries.end(), isIt);
  if (entry == entries.end()) {
    if (fake::isPtx(*module->image) || !fake::names(*module->image, name)) return CUDA_ERROR_NOT_FOUND;
    entry = entries.insert(entries.end(), fake::entryOf(*module->image, name));
  }
  auto made = std::make_unique<CUfunc_st>();
  made->module = module;
  made->entry = &*entry;
  made->maxDynamicShared = std::max(0, kSharedUnasked - int(entry->sharedBytes));
  *function = made.get();
  call->functions[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) {
  NORMC_FAKE_CALL(Context);
  return call->functions.contains(function) ? call.unsafe() : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  NORMC_FAKE_CALL(Context);
  if (!call->functions.contains(function)) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = call->maxThreadsPerBlock;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->maxDynamicShared;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      *value = function->nonPortableCluster;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  NORMC_FAKE_CALL(Context);
  if (!call->functions.contains(function)) return CUDA_ERROR_INVALID_HANDLE;
  const fake_cuda_device& facts = call.device().facts;
  const int most = int(limits::sharedOfBlock(numberOf(facts))) - int(function->entry->sharedBytes);
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 && value <= most)
    function->maxDynamicShared = value;
  else if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED && call.device().facts.major >= 9)
    function->nonPortableCluster = value != 0;
  else
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     size_t sharedBytes) {
  NORMC_FAKE_CALL(Context);
  if (!call->functions.contains(function) || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = residentBlocks(call.device().facts, *function->entry, uint64_t(threads), sharedBytes);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  NORMC_FAKE_CALL(Context);
  if (!call->functions.contains(function)) return CUDA_ERROR_INVALID_VALUE;
  unsigned cluster = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      cluster = config->attrs[i].value.clusterDim.x;
  if (cluster > limits::kPortableCluster && !function->nonPortableCluster)
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const bool fits = cluster <= unsigned(call->largestCluster);
  const fake_cuda_device& facts = call.device().facts;
  const int blocks = residentBlocks(facts, *function->entry, config->blockDimX, config->sharedMemBytes) *
                     facts.multiprocessors;
  *clusters = fits ? blocks / int(cluster) : 0;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream stream,
                        void** parameters, void** extra) {
  if (!fake::fake().recording) return CUDA_SUCCESS;
  NORMC_FAKE_CALL(Context);
  const Launch launch = {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, {1, 1, 1}, sharedBytes, stream};
  return enqueue(call, function, launch, parameters, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  if (!fake::fake().recording) return CUDA_SUCCESS;
  NORMC_FAKE_CALL(Context);
  Launch launch = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                   {config->blockDimX, config->blockDimY, config->blockDimZ},
                   {1, 1, 1},
                   config->sharedMemBytes,
                   config->hStream};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const auto& value = config->attrs[i].value;
    switch (config->attrs[i].id) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        launch.cluster[0] = value.clusterDim.x, launch.cluster[1] = value.clusterDim.y;
        launch.cluster[2] = value.clusterDim.z;
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        launch.cooperative = value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        launch.dependent = value.programmaticStreamSerializationAllowed != 0;
        break;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  if (launch.cooperative && extra) return CUDA_ERROR_INVALID_VALUE;  // as a driver of CUDA 13.0 does
  return enqueue(call, function, launch, parameters, extra);
}

}  // extern "C"
}  // namespace normc::cuda
