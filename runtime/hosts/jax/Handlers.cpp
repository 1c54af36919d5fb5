// The custom calls of JAX: one for each entry of a norm, for any norm, as handlers of XLA's typed FFI.
// Shapes, gradients and transformations are in Python.
//
// Operands and results stand in the order of common/Arguments.h. Attributes: `norm` is the text; `rank` the
// number of dimensions of x without those that vmap put in front of all buffers; `mask` says whether one is
// given; `rows` that each row, or segment, has statistics of its own, so that a batch is just more of them.
#include <xla/ffi/api/ffi.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>

#include "runtime/hosts/common/Arguments.h"
#include "runtime/hosts/common/Scratch.h"
#include "runtime/hosts/common/TypeNames.h"
#include "runtime/hosts/jax/Batch.h"

namespace normc::hosts {
namespace {

namespace ffi = xla::ffi;

/// The threads of XLA, for the call that runs on this thread; null where it is too small for more than one.
thread_local ffi::ThreadPool* helpers = nullptr;

/// Bytes of x from which on other threads are asked: waking one takes some microseconds.
constexpr size_t kManyBytes = size_t{1} << 18;

/// Tasks that several threads share. A thread that comes too late finds none left, so they outlive the call.
struct Tasks {
  int64_t count;
  normc_task task;
  void* data;
  std::atomic<int64_t> begun{0}, done{0};

  void work() {
    for (int64_t i; (i = begun.fetch_add(1, std::memory_order_relaxed)) < count;) {
      task(data, i);
      if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == count) done.notify_all();
    }
  }
};

/// Runs tasks on the threads of XLA and on this one, which waits for tasks that have begun alone: so it never
/// waits for a thread that does the same.
int onThreadsOfXla(void*, int64_t count, normc_task task, void* data) {
  if (!helpers || count < 2) {
    for (int64_t i = 0; i < count; ++i) task(data, i);
    return 0;
  }
  const auto tasks = std::make_shared<Tasks>();
  tasks->count = count;
  tasks->task = task;
  tasks->data = data;
  for (int64_t i = std::min(count, helpers->num_threads()) - 1; i > 0; --i)
    helpers->Schedule([tasks] { tasks->work(); });
  tasks->work();
  for (int64_t done; (done = tasks->done.load(std::memory_order_acquire)) < count;) tasks->done.wait(done);
  return 0;
}

const bool threadsAreSet = (Registry::get().setThreads(onThreadsOfXla), true);

DLDataType typeOf(ffi::DataType type) {
  switch (type) {
    case ffi::DataType::F32:
      return {kDLFloat, 32, 1};
    case ffi::DataType::F64:
      return {kDLFloat, 64, 1};
    case ffi::DataType::F16:
      return {kDLFloat, 16, 1};
    case ffi::DataType::BF16:
      return {kDLBfloat, 16, 1};
    case ffi::DataType::S32:
      return {kDLInt, 32, 1};
    case ffi::DataType::S64:
      return {kDLInt, 64, 1};
    case ffi::DataType::PRED:
      return {kDLBool, 8, 1};
    case ffi::DataType::U32:
      return {kDLUInt, 32, 1};
    case ffi::DataType::U8:
      return {kDLUInt, 8, 1};
    case ffi::DataType::S8:
      return {kDLInt, 8, 1};
    case ffi::DataType::F8E4M3FN:
      return {kFloat8E4M3, 8, 1};
    case ffi::DataType::F8E8M0FNU:
      return {kFloat8E8M0, 8, 1};
    default:
      throw std::invalid_argument("a norm takes arrays of float32, float64, bfloat16 or float16");
  }
}

/// Where a call runs.
struct Place {
  DLDevice device = {kDLCPU, 0};
  void* stream = nullptr;
  ffi::ThreadPool* threads = nullptr;
  ffi::ScratchAllocator* memory = nullptr;
};

void execute(Entry entry, const Place& place, const ffi::RemainingArgs& args, const ffi::RemainingRets& rets,
             std::string_view norm, int64_t rank, bool mask, bool rows) {
  Batch batch(args.size(), rets.size(), place.device);
  for (size_t i = 0; i < args.size(); ++i) {
    const ffi::AnyBuffer given = *args.get<ffi::AnyBuffer>(i);
    batch.add(given.untyped_data(), typeOf(given.element_type()), given.dimensions().begin(),
              given.dimensions().size());
  }
  for (size_t i = 0; i < rets.size(); ++i) {
    ffi::Result<ffi::AnyBuffer> given = *rets.get<ffi::AnyBuffer>(i);
    batch.add(given->untyped_data(), typeOf(given->element_type()), given->dimensions().begin(),
              given->dimensions().size());
  }
  if (args.size() == 0) throw std::invalid_argument("a norm takes x, but no array is given");
  const DLTensor& x = batch.inputs()[0];
  Request request{.entry = entry, .data = x.dtype, .mask = mask, .device = place.device};
  if (entry == Entry::Commit) {  // a state is of f64 for data of f64, and of f32 for all others
    request.data = {kDLFloat, 32, 1};
    for (const DLTensor& field : batch.inputs())
      if (field.dtype.code == kDLFloat) request.data = field.dtype;
  }
  request.channelsFirst = isChannelsFirst(norm);
  const Prepared& plan = Registry::get().prepared(norm, request);
  const Operands operands(plan);
  batch.split(rank, rows ? &operands : nullptr, plan.text.segmented);

  Arguments call(plan, batch.inputs(), batch.outputs());
  const size_t bytes = call.workspaceBytes();
  void* workspace = nullptr;
  if (!place.memory) {
    workspace = Scratch::of(bytes);
  } else if (bytes) {
    const std::optional<void*> given = place.memory->Allocate(bytes);
    if (!given)
      throw std::runtime_error("XLA has no memory for a workspace of " + std::to_string(bytes) + " bytes");
    workspace = *given;
  }
  size_t xBytes = x.dtype.bits / 8;
  for (int i = 0; i < x.ndim; ++i) xBytes *= x.shape[i];
  helpers = xBytes < kManyBytes ? nullptr : place.threads;
  for (int64_t i = 0; i < batch.count(); ++i) {
    batch.select(i);
    call.run(workspace, bytes, place.stream);
  }
}

template <typename F>
ffi::Error guarded(F body) {
  try {
    body();
    return ffi::Error::Success();
  } catch (const std::exception& error) {
    return ffi::Error::InvalidArgument(error.what());
  }
}

template <Entry entry>
ffi::Error onCpu(ffi::ThreadPool threads, ffi::RemainingArgs args, ffi::RemainingRets rets,
                 std::string_view norm, int32_t rank, int32_t mask, int32_t rows) {
  return guarded([&] { execute(entry, {.threads = &threads}, args, rets, norm, rank, mask, rows); });
}

template <Entry entry>
ffi::Error onCuda(void* stream, int32_t device, ffi::ScratchAllocator memory, ffi::RemainingArgs args,
                  ffi::RemainingRets rets, std::string_view norm, int32_t rank, int32_t mask, int32_t rows) {
  return guarded([&] {
    const Place place{.device = {kDLCUDA, device}, .stream = stream, .memory = &memory};
    execute(entry, place, args, rets, norm, rank, mask, rows);
  });
}

template <typename Binding>
auto withAttributes(Binding binding) {
  return std::move(binding)
      .RemainingArgs()
      .RemainingRets()
      .template Attr<std::string_view>("norm")
      .template Attr<int32_t>("rank")
      .template Attr<int32_t>("mask")
      .template Attr<int32_t>("rows");
}

template <Entry entry>
XLA_FFI_Error* handleOnCpu(XLA_FFI_CallFrame* frame) {
  static auto& handler = *withAttributes(ffi::Ffi::Bind().Ctx<ffi::ThreadPool>()).To(onCpu<entry>).release();
  return handler.Call(frame);
}

template <Entry entry>
XLA_FFI_Error* handleOnCuda(XLA_FFI_CallFrame* frame) {
  static auto& handler = *withAttributes(ffi::Ffi::Bind()
                                             .Ctx<ffi::PlatformStream<void*>>()
                                             .Ctx<ffi::DeviceOrdinal>()
                                             .Ctx<ffi::ScratchAllocator>())
                              .To(onCuda<entry>)
                              .release();
  return handler.Call(frame);
}

/// The handlers of one platform, by entry.
template <size_t... entries>
XLA_FFI_Handler* handlerOf(size_t entry, bool cuda, std::index_sequence<entries...>) {
  static constexpr XLA_FFI_Handler* kOnCpu[] = {handleOnCpu<Entry(entries)>...};
  static constexpr XLA_FFI_Handler* kOnCuda[] = {handleOnCuda<Entry(entries)>...};
  return (cuda ? kOnCuda : kOnCpu)[entry];
}

}  // namespace
}  // namespace normc::hosts

/// Returns the handler of an entry ("forward", ...), on a CPU or on CUDA devices: what
/// jax.ffi.register_ffi_target takes, and XLA's registry in a program without Python. Returns null for a name
/// that no entry has.
extern "C" NORMC_API XLA_FFI_Handler* NormcXlaHandler(const char* entry, int cuda) {
  using namespace normc::hosts;
  const auto found = std::find(std::begin(kEntries), std::end(kEntries), std::string_view(entry));
  if (found == std::end(kEntries)) return nullptr;
  return handlerOf(size_t(found - std::begin(kEntries)), cuda != 0,
                   std::make_index_sequence<std::size(kEntries)>());
}
