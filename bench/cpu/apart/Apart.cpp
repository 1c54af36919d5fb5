#include "bench/cpu/apart/Apart.h"

#include <array>
#include <optional>

#include "autotune/measure/Subject.h"
#include "bench/cpu/apart/LoopOnThreads.h"

namespace normc::bench::apart {
namespace {

Extents sizesOf(const Tensors& tensors) {
  return {tensors.shape.segments, tensors.shape.rows, tensors.shape.features};
}

host::Plan planOf(const Kernels& kernels, Problem problem, Entry entry, const Tensors& tensors, int threads) {
  problem.entry = entry;
  return kernels.plan(problem.text(tensors.shape.segments, tensors.shape.rows), threads);
}

/// Binds roles to memory.
class Places {
 public:
  Places(const Tensors& tensors, Scratch& scratch) : tensors_(tensors), scratch_(scratch) {}

  /// Gives a role the memory of a tensor.
  void put(Role role, Tensor tensor) { held_[role] = tensors_.memory[tensor]; }
  void put(Role role, Role other) { held_[role] = held_.at(other); }
  void putScratch(Role role) { held_[role] = scratch_.of(role, tensors_.bytes()); }
  std::shared_ptr<const Held> held(Operand operand) const {
    return operand.tensor ? tensors_.memory[*operand.tensor] : held_.at(operand.role);
  }
  void* address(Operand operand) const { return operand.any() ? held(operand)->data() : nullptr; }

 private:
  const Tensors& tensors_;
  Scratch& scratch_;
  std::map<Role, std::shared_ptr<const Held>> held_;
};

/// True if a backward writes the gradient of the residual where it would put that of the output of the norm.
bool keepsResidualGradient(const Problem& problem) {
  return isBackward(problem.entry) && problem.spec->hasResidual(Side::After) &&
         hasOf(problem).ownResidualGradient;
}

/// True if a way differs from those before it in kWays.
bool exists(const Problem& problem, const Neighbours& neighbours, Way way, const Tensors& tensors) {
  const Spec& spec = *problem.spec;
  const bool first = neighbours.first.has_value(), last = neighbours.last.has_value();
  const bool given = isBackward(problem.entry) ? keepsResidualGradient(problem) : spec.hasStream();
  if (way.inPlace && !last && (!first || given)) return false;
  const Loop any{.bf16 = tensors.data == DType::BF16, .features = tensors.shape.features};
  return !way.streaming || ((first || last) && mayStream(any));
}

class Apart : public Contestant {
 public:
  Apart(const Kernels& kernels, const Problem& problem, const Problem& bare, const Neighbours& neighbours,
        const Tensors& tensors, int threads, Way way, Scratch& scratch)
      : way_(way),
        pool_(threads - 1),
        kernels_(kernels.onThreads(&Apart::parallel, &pool_)),
        places_(tensors, scratch) {
    place(problem, neighbours, way);
    TensorSet set = tensors;
    set.memory[kX] = places_.held(Role::Input);
    set.memory[kY] = places_.held(Role::Output);
    if (isBackward(problem.entry)) {
      set.memory[kDy] = places_.held(Role::Above);
      set.memory[kDx] = places_.held(Role::Below);
    }
    buffers_.emplace(planOf(kernels_, bare, bare.entry, tensors, threads), bare, sizesOf(tensors), set);
    const auto bind = [&](const std::optional<Neighbour>& neighbour, std::unique_ptr<LoopOnThreads>& loop) {
      if (neighbour) loop = bound(*neighbour, *problem.spec, tensors);
    };
    if (isBackward(problem.entry)) {
      const Neighbours ahead = *neighboursOf(*problem.spec, false);
      std::unique_ptr<LoopOnThreads> before, keep;
      bind(ahead.first, before);
      bind(neighbours.keep, keep);
      if (before) before->run();
      buffers_->saveFrom(planOf(kernels_, bare, Entry::Forward, tensors, threads));
      if (keep) keep->run();
    }
    bind(neighbours.first, first_);
    bind(neighbours.last, last_);
    norm_.emplace(planOf(kernels_, bare, bare.entry, tensors, threads), *buffers_);
  }

  double run(int64_t calls) override {
    return timed(calls, [this] {
      if (first_) first_->run();
      norm_->call(0);
      if (last_) last_->run();
    });
  }
  std::string implementation() const override { return way_.text(); }

 private:
  void place(const Problem& problem, const Neighbours& neighbours, Way way) {
    const Spec& spec = *problem.spec;
    const bool backward = isBackward(problem.entry);
    const bool before = spec.hasResidual(Side::Before) || spec.hasGate(Side::Before);
    const auto between = [&](Role role, Tensor end) {
      way.inPlace ? places_.put(role, end) : places_.putScratch(role);
    };
    if (!backward) {
      if (spec.hasStream())
        places_.put(Role::Input, kResidualOut);
      else if (before)
        between(Role::Input, kY);
      else
        places_.put(Role::Input, kX);
      neighbours.last ? between(Role::Output, kY) : places_.put(Role::Output, kY);
      return;
    }
    before ? places_.putScratch(Role::Input) : places_.put(Role::Input, kX);
    neighbours.first ? places_.putScratch(Role::Output) : places_.put(Role::Output, kDx);
    neighbours.keep ? places_.putScratch(Role::Kept) : places_.put(Role::Kept, Role::Output);
    if (!neighbours.first)
      places_.put(Role::Above, kDy);
    else if (keepsResidualGradient(problem))
      places_.put(Role::Above, kDresidual);
    else
      between(Role::Above, kDx);
    neighbours.last ? between(Role::Below, kDx) : places_.put(Role::Below, kDx);
  }

  std::unique_ptr<LoopOnThreads> bound(const Neighbour& neighbour, const Spec& spec, const Tensors& tensors) {
    Loop loop;
    loop.op = neighbour.op;
    loop.bf16 = tensors.data == DType::BF16;
    loop.features = tensors.shape.features;
    loop.rowsOfSegment = tensors.shape.rows;
    if (spec.modulate) loop.offset = float(spec.modulate->offset);
    for (int i = 0; i < 3; ++i) loop.in[i] = places_.address(neighbour.in[i]);
    for (int i = 0; i < 2; ++i) loop.vectors[i] = places_.address(neighbour.vectors[i]);
    for (int i = 0; i < 2; ++i) loop.out[i] = places_.address(neighbour.out[i]);
    loop.streaming = way_.streaming && mayStream(loop);
    const std::array<void*, 2> sums = {places_.address(neighbour.sums[0]),
                                       places_.address(neighbour.sums[1])};
    return std::make_unique<LoopOnThreads>(loop, tensors.shape.segments, sums, pool_);
  }

  /// Runs tasks of the norm on the threads of the loops.
  static int parallel(void* pool, int64_t count, normc_task task, void* data) {
    auto* const threads = static_cast<runtime::Pool*>(pool);
    threads->run(count, threads->workers() + 1, task, data);
    return 0;
  }

  Way way_;
  runtime::Pool pool_;
  Kernels kernels_;
  Places places_;
  std::optional<Buffers> buffers_;
  std::optional<Subject> norm_;
  std::unique_ptr<LoopOnThreads> first_, last_;
};

}  // namespace

std::string Way::text() const {
  return std::string(streaming ? "streaming" : "cached") + " stores" + (inPlace ? ", in place" : "");
}

std::shared_ptr<const Held> Scratch::of(Role role, int64_t bytes) {
  std::shared_ptr<const Held>& held = held_[role];
  if (!held || held->bytes() < bytes) held = std::make_shared<const Held>(Memory(bytes));
  return held;
}

std::unique_ptr<Contestant> make(const Kernels& kernels, const Problem& problem, const Tensors& tensors,
                                 int threads, Way way, Scratch& scratch, std::string& why) {
  const auto bare = bareOf(problem);
  if (!bare) return nullptr;
  const auto neighbours = neighboursOf(*problem.spec, isBackward(problem.entry));
  if (!neighbours) {
    why = "has no loops for " + problem.spec->name;
    return nullptr;
  }
  if (problem.hasConstantStatistics() || tensors.shape.layout == Layout::ChannelsFirst ||
      (problem.data != DType::F32 && problem.data != DType::BF16)) {
    why = "is not asked for " + problem.parts().head() + ", channels first, and types but f32 and bf16";
    return nullptr;
  }
  if (!exists(problem, *neighbours, way, tensors)) return nullptr;
  return std::make_unique<Apart>(kernels, problem, *bare, *neighbours, tensors, threads, way, scratch);
}

}  // namespace normc::bench::apart
