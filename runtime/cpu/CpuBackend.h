// Executes a kernel on the CPU: its phases one after another, the chunks of a phase on the threads of the
// plan.
#pragma once

#include "runtime/abi/kernel.h"
#include "runtime/plan/Backend.h"

namespace normc::runtime {

class CpuBackend final : public Backend {
 public:
  static normc_status create(const Binding& binding, std::unique_ptr<Backend>& backend);

  normc_status run(const Call& call) const override;
  int barriers(const normc_cut* cuts) const override;
  std::string describe() const override { return description_; }
  normc_status allocate(size_t bytes, std::unique_ptr<MemoryBlock>& memory) const override;
  normc_status write(void* to, const void* from, size_t bytes) const override;

 private:
  explicit CpuBackend(const Binding& binding);
  normc_status bindCode(const Package& package);
  normc_status checkSteady(std::string_view problem) const;
  bool knowsStep() const { return stepField_ != kNone && warmupScalar_ != kNone; }
  bool warmupIsOver(const Call& call) const;
  int64_t step(const Call& call) const;

  /// Returns the order of a phase's chunks: that of the phase before with the same units, reversed. What that
  /// one read last is still in the caches.
  ChunkOrder orderOf(size_t phase) const;
  bool leavesOut(size_t phase, bool warmupIsOver) const {
    return warmupIsOver && kernel_.phases[phase].when == When::Warmup;
  }
  /// True if the threads of a call by parts wait for each other before the phase. The result depends on the
  /// sizes alone, and not on the step.
  bool waitsBefore(size_t phase, const normc_cut* cuts) const;
  /// Clears the rows of zeros that stand for inputs that are left out.
  void clear(const Call& call) const;
  normc_status runPart(const Call& call, const normc_kernel_args& args, bool warmupIsOver) const;

  static constexpr int kNone = -1;
  const Kernel& kernel_;
  const std::vector<double>& scalars_;
  std::shared_ptr<const SharedObject> code_;
  std::vector<normc_phase> phases_;
  std::vector<ChunkOrder> orders_;  ///< of each phase
  std::vector<size_t> mayBeZeros_;  ///< operands of inputs that may be left out
  Threads threads_;
  bool keepDenormals_, steady_;
  bool hasWarmup_ = false;  ///< true if a phase may be left out after warmup
  int stepField_ = kNone, warmupScalar_ = kNone;
  std::string description_;
};

}  // namespace normc::runtime
