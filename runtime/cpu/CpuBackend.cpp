#include "runtime/cpu/CpuBackend.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "runtime/core/Error.h"
#include "runtime/cpu/FloatMode.h"
#include "runtime/threads/Pool.h"
#include "runtime/threads/WorkShares.h"

namespace normc::runtime {
namespace {

struct PhaseCall {
  normc_phase phase;
  const normc_kernel_args* args;
  int64_t chunks;
  ChunkOrder order;
  bool keepDenormals;

  void runHere(int64_t first, int64_t end) const {
    if (first == end) return;
    const FloatMode mode(keepDenormals);
    for (int64_t i = first; i < end; ++i) phase(args, chunkDrawn(order, i, first, end));
  }
  static void runChunk(void* self, int64_t chunk) {
    const auto& call = *static_cast<const PhaseCall*>(self);
    const FloatMode mode(call.keepDenormals);
    call.phase(call.args, chunk);
  }
};

/// A phase on the threads of a host. Each task of the host's parallel_for takes chunks as one thread.
class HostTasks {
 public:
  HostTasks(PhaseCall& call, const Threads& threads)
      : call_(call),
        threads_(threads),
        tasks_(threads.limit > 0 ? std::min<int64_t>(call.chunks, threads.limit) : call.chunks),
        shares_(call.chunks, tasks_, call.order) {}

  /// Returns the result of the host's parallel_for.
  int run() {
    return threads_.parallelFor(
        threads_.ctx, tasks_, [](void* self, int64_t task) { static_cast<HostTasks*>(self)->work(task); },
        this);
  }
  /// False if it returned before all chunks were taken.
  bool haveRun() const { return shares_.allDrawn(); }

 private:
  void work(int64_t task) {
    shares_.draw(task, [this](int64_t chunk) { PhaseCall::runChunk(&call_, chunk); });
  }

  PhaseCall& call_;
  const Threads& threads_;
  const int64_t tasks_;
  WorkShares shares_;
};

class HostMemory final : public MemoryBlock {
 public:
  explicit HostMemory(size_t bytes) {
    data_ = std::aligned_alloc(kAlignment, bytes);
    bytes_ = bytes;
  }
  ~HostMemory() override { std::free(data_); }

  normc_status read(size_t offset, void* to, size_t bytes) const override {
    std::memcpy(to, static_cast<const char*>(data_) + offset, bytes);
    return NORMC_OK;
  }
  normc_status write(size_t offset, const void* from, size_t bytes) override {
    std::memcpy(static_cast<char*>(data_) + offset, from, bytes);
    return NORMC_OK;
  }
};

}  // namespace

CpuBackend::CpuBackend(const Binding& binding)
    : kernel_(binding.kernel),
      scalars_(binding.scalars),
      keepDenormals_(binding.request.denormals == NORMC_DENORMALS_KEEP),
      steady_(binding.request.steady != 0) {
  const auto& phases = kernel_.phases;
  threads_ = binding.context.threads(
      binding.request.max_threads,
      std::any_of(phases.begin(), phases.end(), [](const Phase& p) { return p.maxChunks > 1; }));
  for (size_t i = 0; i < kernel_.operands.size(); ++i)
    if (const Operand& operand = kernel_.operands[i];
        operand.role == Role::Tensor && !operand.written() && infoOf(operand.tensor).mayBeLeftOut())
      mayBeZeros_.push_back(i);
  for (const Phase& phase : phases) hasWarmup_ |= phase.when == When::Warmup;
  warmupScalar_ = indexOf(kernel_.scalars, "warmup_steps");
  // The step that decides is that of this forward. Backward reads it from what forward saved, because later
  // forwards may have incremented the step in the state.
  stepField_ = indexOf(kernel_.parts.readsSaved() ? kernel_.saved : kernel_.state, "step");

  for (size_t i = 0; i < phases.size(); ++i) orders_.push_back(orderOf(i));

  description_ = "processor: " + std::string(normc_cpu_isa());
  if (binding.request.isa_cap) description_ += ", capped at " + std::string(binding.request.isa_cap);
  description_ += "\nthreads: " + threads_.description + "\n";
  description_ += std::string("denormals: ") + (keepDenormals_ ? "kept" : "flushed") + "\n";
  if (steady_ && hasWarmup_) description_ += "steady: phases of warmup are left out\n";
}

normc_status CpuBackend::create(const Binding& binding, std::unique_ptr<Backend>& backend) {
  std::unique_ptr<CpuBackend> made(new CpuBackend(binding));
  NORMC_TRY(made->bindCode(binding.package));
  NORMC_TRY(made->checkSteady(binding.request.problem));
  backend = std::move(made);
  return NORMC_OK;
}

normc_status CpuBackend::bindCode(const Package& package) {
  if (const normc_status status = package.load(kernel_.blob, code_); status != NORMC_OK)
    return status == NORMC_FAILED_PRECONDITION ? kUnfit : status;  // code that the loader refuses
  for (const Phase& phase : kernel_.phases) {
    void* const symbol = code_->symbol(phase.symbol.c_str());
    if (!symbol)
      return fail(NORMC_DATA_LOSS, package.label(), " is damaged: blob ", kernel_.blob, " has no function '",
                  phase.symbol, "', which ", kernel_.problem, " needs");
    phases_.push_back(reinterpret_cast<normc_phase>(symbol));
  }
  return NORMC_OK;
}

normc_status CpuBackend::checkSteady(std::string_view problem) const {
  if (!steady_ || !hasWarmup_ || knowsStep()) return NORMC_OK;
  return fail(NORMC_FAILED_PRECONDITION, "request.steady is set, but ", problem,
              " is not told its step, so warmup may not be over; leave it 0");
}

int64_t CpuBackend::step(const Call& call) const {
  const bool saved = kernel_.parts.readsSaved();  // it holds the step of the forward that wrote it
  const char* const memory = (saved ? call.saved : call.stateIn)[stepField_];
  int64_t step = 0;
  if (memory) std::memcpy(&step, memory, sizeof step);
  return step;
}

bool CpuBackend::warmupIsOver(const Call& call) const {
  if (!knowsStep()) return false;
  const double steps = scalars_[warmupScalar_], now = static_cast<double>(step(call));
  return kernel_.parts.readsSaved() ? now > steps : now >= steps;
}

ChunkOrder CpuBackend::orderOf(size_t phase) const {
  const Shape& units = kernel_.phases[phase].units;
  for (size_t i = phase; i-- > 0;)
    if (kernel_.phases[i].units == units)
      return orders_[i] == ChunkOrder::Ascending ? ChunkOrder::Descending : ChunkOrder::Ascending;
  return ChunkOrder::Ascending;
}

bool CpuBackend::waitsBefore(size_t phase, const normc_cut* cuts) const {
  // A phase may write the step of the state, and every thread reads it before.
  if (phase == 0) return hasWarmup_ && knowsStep() && !kernel_.parts.isBackward();
  // The only chunk of a phase is in the first part.
  return cuts[phase - 1].chunks > 1 || cuts[phase].chunks > 1;
}

int CpuBackend::barriers(const normc_cut* cuts) const {
  int count = 0;
  for (size_t i = 0; i < phases_.size(); ++i) count += waitsBefore(i, cuts);
  return count;
}

/// Every part of a call stores the same zeros, each before its own first phase, so that none waits for
/// another. The stores are atomic, because other parts may store there, too.
void CpuBackend::clear(const Call& call) const {
  for (const size_t i : mayBeZeros_) {
    const int64_t bytes = bytesOfZeros(kernel_, kernel_.operands[i], call.sizes, call.leftOut);
    auto* const words = static_cast<uint64_t*>(call.operands[i].data);
    for (int64_t word = 0; word < bytes / int64_t(sizeof *words); ++word)
      std::atomic_ref(words[word]).store(0, std::memory_order_relaxed);
  }
}

normc_status CpuBackend::runPart(const Call& call, const normc_kernel_args& args, bool warmupIsOver) const {
  const Part& part = *call.part;
  for (size_t i = 0; i < phases_.size(); ++i) {
    if (waitsBefore(i, call.cuts.data())) part.wait();
    if (leavesOut(i, warmupIsOver) || !part.exists()) continue;
    const int64_t chunks = call.cuts[i].chunks;
    PhaseCall{phases_[i], &args, chunks, orders_[i], keepDenormals_}.runHere(part.firstOf(chunks),
                                                                             part.firstOf(chunks, 1));
  }
  if (part.exists()) return NORMC_OK;
  return fail(NORMC_INVALID_ARGUMENT, "ith is ", part.index, "; it must be from 0 to ", part.count - 1,
              ", nth - 1; the outputs are undefined");
}

normc_status CpuBackend::run(const Call& call) const {
  const Part* const part = call.part;
  if (part && part->count > 1 && !part->barrier && (phases_.size() > 1 || waitsBefore(0, call.cuts.data())))
    return fail(NORMC_INVALID_ARGUMENT, "barrier is null, but nth is ", part->count, " and the threads of ",
                kernel_.problem, " wait for each other between its phases");
  const bool leaveOut = hasWarmup_ && warmupIsOver(call);
  if (steady_ && hasWarmup_ && !leaveOut)
    return fail(NORMC_FAILED_PRECONDITION, "warmup is not over: 'step' of ",
                kernel_.parts.readsSaved() ? "saved" : "state_in", " is ", step(call), ", warmup_steps is ",
                scalars_[warmupScalar_], "; this plan is steady, use one that is not");
  // No phase reads or writes the memory of a copy, so one thread makes it, at any time.
  for (int i = 0; i < call.copyCount && (!part || part->index == 0); ++i)
    std::memcpy(call.copies[i].to, call.copies[i].from, call.copies[i].bytes);
  clear(call);

  const normc_kernel_args args = {call.operands.data(), scalars_.data(), call.cuts.data(),
                                  call.sizes.segments,  call.sizes.rows, call.sizes.features};
  if (part) return runPart(call, args, leaveOut);
  for (size_t i = 0; i < phases_.size(); ++i) {
    if (leavesOut(i, leaveOut)) continue;
    PhaseCall phase = {phases_[i], &args, call.cuts[i].chunks, orders_[i], keepDenormals_};
    if (phase.chunks <= 1 || threads_.none()) {
      phase.runHere(0, phase.chunks);
      continue;
    }
    if (threads_.pool) {
      threads_.pool->run(phase.chunks, threads_.limit, PhaseCall::runChunk, &phase, phase.order);
      continue;
    }
    HostTasks tasks(phase, threads_);
    if (const int result = tasks.run(); result != 0)
      return fail(NORMC_ABORTED, "parallel_for returned ", result, " in phase ", i,
                  "; the outputs are undefined");
    if (!tasks.haveRun())
      return fail(NORMC_ABORTED, "parallel_for returned in phase ", i,
                  " before its tasks had run; the outputs are undefined");
  }
  return NORMC_OK;
}

normc_status CpuBackend::allocate(size_t bytes, std::unique_ptr<MemoryBlock>& memory) const {
  auto made = std::make_unique<HostMemory>(bytes);
  if (!made->data()) return fail(NORMC_RESOURCE_EXHAUSTED, "no memory for a state of ", bytes, " bytes");
  memory = std::move(made);
  return NORMC_OK;
}

normc_status CpuBackend::write(void* to, const void* from, size_t bytes) const {
  std::memcpy(to, from, bytes);
  return NORMC_OK;
}

}  // namespace normc::runtime
