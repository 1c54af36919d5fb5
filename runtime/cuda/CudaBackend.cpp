#include "runtime/cuda/CudaBackend.h"

#include <algorithm>
#include <cstring>

#include "runtime/abi/CudaLimits.h"
#include "runtime/core/Error.h"
#include "runtime/cuda/CudaPlatform.h"

namespace normc::runtime {
namespace {

using namespace cuda;

/// The most parameters of a launch, in words; every driver accepts 4096 bytes.
constexpr size_t kMaxWords =
    kMaxOperands + 2 * (kTensorCount + kMaxFields) + 3 + kMaxScalars + 3 * kMaxPhases;
static_assert(kMaxWords * NORMC_CUDA_WORD <= 4096 && sizeof(uint64_t) == NORMC_CUDA_WORD);

bool hasStrides(const Operand& operand) {
  if (operand.role == Role::Partials) return true;
  return operand.role == Role::Tensor &&
         (operand.tensorShape == TensorShape::Elements || operand.tensorShape == TensorShape::PerRow ||
          operand.tensorShape == TensorShape::PerPair);
}

int64_t gridY(const Launch& launch, const Sizes& sizes) {
  return launch.columns == 0 ? 1 : (sizes.features - 1) / launch.columns + 1;
}

/// The attributes of a launch except grid and block.
struct Attributes {
  CUlaunchAttribute list[3];
  unsigned count = 0;

  CUlaunchAttribute& add(CUlaunchAttributeID id) {
    list[count] = {id, {}, {}};
    return list[count++];
  }
};

}  // namespace

normc_status CudaBackend::create(std::shared_ptr<const Device> device, const Binding& binding,
                                 std::unique_ptr<Backend>& backend) {
  std::unique_ptr<CudaBackend> made(new CudaBackend(std::move(device), binding));
  NORMC_TRY(made->loadImage(binding.package));
  NORMC_TRY(made->bindEntries(binding.request.steady != 0));
  backend = std::move(made);
  return NORMC_OK;
}

normc_status CudaBackend::loadBlob(const Package& package, size_t blob) {
  std::vector<char> image;
  NORMC_TRY(package.read(blob, image));
  image.push_back('\0');  // PTX is text and needs a zero at its end; a cubin ignores it
  const Blob& info = package.manifest().blobs[blob];
  const std::string what =
      "blob " + std::to_string(blob) + " of " + package.label() + " (" + info.kind + ", " + info.isa + ")";
  return device_->load(info.kind + info.sha256, what, image.data(), module_);
}

normc_status CudaBackend::loadImage(const Package& package) {
  const Arch& arch = device_->facts().arch;
  const Rung rung = rungOf(kernel_, arch);
  std::string note;
  if (rung != Rung::Ptx) {
    code_ =
        "cubin for " + kernel_.isa + ", " +
        (rung == Rung::ExactCubin ? "exactly this device's" : "of the same major number as this device's");
    const normc_status status = loadBlob(package, *kernel_.cubin);
    // If the driver refuses the cubin, PTX is tried. Any other status is final.
    if (status != kUnfit) return status;
    note = std::string(", because ") + lastError();
  }
  code_ = "PTX for " + kernel_.isa + ", compiled by the driver" + note;
  const normc_status status = loadBlob(package, kernel_.blob);
  if (status != kUnfit || note.empty()) return status;
  return fail(status, std::string(lastError()), "; it was tried", note);
}

normc_status CudaBackend::bindEntries(bool steady) {
  for (const Phase& phase : kernel_.phases) {
    Entry& entry = entries_.emplace_back();
    entry.leftOut = steady && phase.when == When::Warmup;
    steady_ |= entry.leftOut;
    if (entry.leftOut) continue;
    NORMC_TRY(module_->function(phase.symbol, *phase.launch, entry.aligned));
    entry.unaligned = entry.aligned;
    if (phase.unaligned) NORMC_TRY(module_->function(*phase.unaligned, *phase.launch, entry.unaligned));
    if (phase.launch->cluster > 1) {
      NORMC_TRY(module_->checkCluster(phase.symbol, *phase.launch, entry.aligned));
      if (phase.unaligned) NORMC_TRY(module_->checkCluster(*phase.unaligned, *phase.launch, entry.unaligned));
    }
    if (phase.launch->cooperative == 1) continue;
    const int64_t blocks = mostBlocks(entries_.size() - 1);
    NORMC_TRY(module_->checkTogether(phase.symbol, *phase.launch, blocks, entry.aligned));
    if (phase.unaligned)
      NORMC_TRY(module_->checkTogether(*phase.unaligned, *phase.launch, blocks, entry.unaligned));
  }
  return NORMC_OK;
}

/// Returns the most blocks of a launch of the phase in any call: fewer than the manifest allows if features
/// alone decide and are known.
int64_t CudaBackend::mostBlocks(size_t phase) const {
  const Phase& info = kernel_.phases[phase];
  int64_t chunks = info.maxChunks;
  const bool known =
      kernel_.parts.features && std::all_of(info.units.begin(), info.units.end(), [](const Factor& f) {
        return f.kind == Factor::Fixed || f.kind == Factor::Features;
      });
  normc_cut cuts[kMaxPhases];
  if (known && computeCuts(kernel_, {1, 1, *kernel_.parts.features}, cuts))
    chunks = std::min(chunks, cuts[phase].chunks);
  const int64_t columns = kernel_.parts.features ? gridY(*info.launch, {1, 1, *kernel_.parts.features}) : 1;
  return multiply(multiply(std::max(chunks, info.launch->least), info.launch->cooperative), columns);
}

std::string CudaBackend::describe() const {
  std::string text = "device: " + device_->label() + ", " + device_->facts().name + ", " +
                     device_->facts().arch.text() + ", driver for CUDA " +
                     Driver::versionText(device_->driver().version()) + "\n";
  text += "code: " + code_ + "\n";
  if (steady_) text += "steady: phases of warmup are left out\n";
  return text;
}

/// Returns the bytes of an element of the X-sized operand with the widest ones.
static int64_t widestBytes(const package::Kernel& kernel) {
  int64_t widest = 1;
  for (const Operand& operand : kernel.operands)
    if (operand.role == Role::Tensor && operand.tensorShape == TensorShape::Elements &&
        infoOf(operand.tensor).type != TypeRule::Mask)
      widest = std::max(widest, int64_t(bytes(operand.type)));
  return widest;
}

/// Combines, by OR, all addresses and strides that have to be multiples of the alignment: it is that of the
/// widest X-sized operand, and others have to begin at a multiple of as many elements.
bool CudaBackend::isAligned(const Call& call) const {
  const auto bits = [](const void* memory) { return reinterpret_cast<uintptr_t>(memory); };
  const int64_t line = kernel_.parts.channelsFirst() ? call.sizes.rows : call.sizes.features,
                widest = widestBytes(kernel_);
  uintptr_t all = 0;
  for (size_t i = 0; i < kernel_.operands.size(); ++i) {
    const Operand& operand = kernel_.operands[i];
    if (operand.role == Role::Partial || operand.role == Role::Partials) continue;
    if (operand.role != Role::Tensor) all |= bits(call.operands[i].data);
    if (operand.role != Role::Tensor || infoOf(operand.tensor).type == TypeRule::Mask) continue;
    const bool xSized = operand.tensorShape == TensorShape::Elements,
               strided = xSized || operand.tensorShape == TensorShape::PerPair;
    const int64_t narrower = xSized ? widest / bytes(operand.type) : 1;
    if (xSized) all |= line * widest;
    if (operand.tensorShape == TensorShape::PerSegment && call.sizes.segments > 1)
      all |= call.sizes.features * bytes(operand.type);
    if (!call.tensors[operand.tensor]) continue;
    const View& view = call.views[operand.tensor];
    all |= bits(view.data) * narrower;
    if (!strided) continue;
    if (view.outer > 1) all |= view.outerStride * view.width * narrower;
    if (view.middle > 1) all |= view.middleStride * view.width * narrower;
  }
  return kernel_.alignment == 0 || (all & (kernel_.alignment - 1)) == 0;
}

size_t CudaBackend::layOutWords(const Call& call, uint64_t* words) const {
  uint64_t* next = words;
  const size_t operands = kernel_.operands.size();
  for (size_t i = 0; i < operands; ++i) *next++ = reinterpret_cast<uint64_t>(call.operands[i].data);
  for (size_t i = 0; i < operands; ++i) {
    if (!hasStrides(kernel_.operands[i])) continue;
    *next++ = call.operands[i].segment_stride;
    *next++ = call.operands[i].row_stride;
  }
  *next++ = call.sizes.segments;
  *next++ = call.sizes.rows;
  *next++ = call.sizes.features;
  const size_t scalarBytes = scalars_.size() * NORMC_CUDA_WORD;
  if (scalarBytes > 0) std::memcpy(next, scalars_.data(), scalarBytes);  // a kernel may have none
  next += scalars_.size();
  for (size_t i = 0; i < entries_.size(); ++i) {
    *next++ = call.cuts[i].units;
    *next++ = call.cuts[i].chunk_units;
    *next++ = call.cuts[i].chunks;
  }
  return next - words;
}

normc_status CudaBackend::checkGrid(const Call& call) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Launch& launch = *kernel_.phases[i].launch;
    if (gridY(launch, call.sizes) > limits::kGridY)
      return fail(NORMC_FAILED_PRECONDITION, "the call has ", call.sizes.features,
                  " features; the kernel of this plan takes at most ", limits::kGridY * launch.columns, ", ",
                  limits::kGridY, " blocks of ", launch.columns);
    const int64_t blocks = std::max(call.cuts[i].chunks, launch.least) * launch.cluster * launch.cooperative;
    if (blocks > limits::kGridX)
      return fail(NORMC_FAILED_PRECONDITION, "phase ", i, " of this call would have ", blocks,
                  " blocks; a launch has at most ", limits::kGridX);
  }
  return NORMC_OK;
}

/// True if phases may begin while the one before them on the stream runs. Graphs support that from CUDA 12.3
/// on.
bool CudaBackend::mayOverlap(CUstream stream) const {
  constexpr int kGraphsCan = 12030;
  const Driver& driver = device_->driver();
  if (driver.version() >= kGraphsCan) return true;
  CUstreamCaptureStatus status;
  return driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_NONE;
}

/// `overlaps`: the phase may begin before the previous one ends. False for the first phase of a call, since
/// the work before it on the stream is not part of the call.
normc_status CudaBackend::launch(size_t phase, const Call& call, bool aligned, bool overlaps, uint64_t* words,
                                 size_t count) const {
  const Launch& how = *kernel_.phases[phase].launch;
  const auto stream = static_cast<CUstream>(call.args.stream);
  const CUfunction function = aligned ? entries_[phase].aligned : entries_[phase].unaligned;
  const unsigned gridX = std::max(call.cuts[phase].chunks, how.least) * how.cluster * how.cooperative,
                 y = gridY(how, call.sizes);
  const unsigned threads = how.threads, shared = how.shared, cluster = how.cluster;
  Attributes attributes;
  if (cluster > 1) attributes.add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).value.clusterDim = {cluster, 1, 1};
  if (how.cooperative > 1) attributes.add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).value.cooperative = 1;
  if (how.dependent && overlaps)
    attributes.add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        .value.programmaticStreamSerializationAllowed = 1;
  size_t bytes = count * NORMC_CUDA_WORD;
  void* extra[] = {reinterpret_cast<void*>(kLaunchBufferPointer), words,
                   reinterpret_cast<void*>(kLaunchBufferSize), &bytes, nullptr};
  void* each[kMaxWords];
  const Driver& driver = device_->driver();
  CUresult result;
  if (attributes.count == 0) {
    result = driver->cuLaunchKernel(function, gridX, y, 1, threads, 1, 1, shared, stream, nullptr, extra);
  } else {
    const CUlaunchConfig config = {gridX, y,      1,      threads,         1,
                                   1,     shared, stream, attributes.list, attributes.count};
    // Drivers refuse a cooperative launch whose parameters are in one buffer.
    const bool apart = how.cooperative > 1;
    for (size_t i = 0; apart && i < count; ++i) each[i] = words + i;
    result = driver->cuLaunchKernelEx(&config, function, apart ? each : nullptr, apart ? nullptr : extra);
  }
  if (result == CUDA_SUCCESS) [[likely]]
    return NORMC_OK;
  const Phase& info = kernel_.phases[phase];
  return driver.refuse(NORMC_ABORTED, result, "launching phase ", phase, " ('",
                       aligned ? info.symbol : info.unaligned.value_or(info.symbol), "') on ",
                       device_->label());
}

normc_status CudaBackend::clear(const Call& call) const {
  const Driver& driver = device_->driver();
  for (size_t i = 0; i < kernel_.operands.size(); ++i) {
    const Operand& operand = kernel_.operands[i];
    const int64_t bytes =
        operand.zeroed() ? elements(operand.shape, call.sizes, call.cuts.data()) * normc::bytes(operand.type)
                         : bytesOfZeros(kernel_, operand, call.sizes, call.leftOut);
    if (bytes == 0 || !call.operands[i].data) continue;
    const CUresult result = driver->cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(call.operands[i].data), 0,
                                                    size_t(bytes), static_cast<CUstream>(call.args.stream));
    if (result != CUDA_SUCCESS) [[unlikely]]
      return driver.refuse(NORMC_ABORTED, result, "clearing workspace on ", device_->label());
  }
  return NORMC_OK;
}

normc_status CudaBackend::run(const Call& call) const {
  const auto stream = static_cast<CUstream>(call.args.stream);
  NORMC_TRY(checkGrid(call));
  const Device::Guard guard(*device_);
  NORMC_TRY(guard.status());
  NORMC_TRY(device_->checkStream(stream));
  const Driver& driver = device_->driver();
  for (int i = 0; i < call.copyCount; ++i) {
    const FieldCopy& copy = call.copies[i];
    const CUresult result = driver->cuMemcpyDtoDAsync_v2(
        reinterpret_cast<CUdeviceptr>(copy.to), reinterpret_cast<CUdeviceptr>(copy.from), copy.bytes, stream);
    if (result != CUDA_SUCCESS) [[unlikely]]
      return driver.refuse(NORMC_ABORTED, result, "copying a field of the state on ", device_->label());
  }
  NORMC_TRY(clear(call));
  uint64_t words[kMaxWords];
  const size_t count = layOutWords(call, words);
  const bool aligned = isAligned(call);
  const bool dependent = std::any_of(kernel_.phases.begin(), kernel_.phases.end(),
                                     [](const Phase& p) { return p.launch->dependent; });
  const bool may = dependent && mayOverlap(stream);
  bool first = true;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].leftOut || std::max(call.cuts[i].chunks, kernel_.phases[i].launch->least) == 0) continue;
    NORMC_TRY(launch(i, call, aligned, may && !first, words, count));
    first = false;
  }
  return NORMC_OK;
}

}  // namespace normc::runtime
