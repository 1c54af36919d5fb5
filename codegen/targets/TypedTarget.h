// BoundTarget and BoundSchedule for a target whose schedules are a struct. The target derives from
// TypedTarget and has functions of that struct; only this file parses text.
#pragma once

#include "codegen/Target.h"

namespace normc::codegen {

/// `Bound` derives from this class and has the functions that TypedSchedule calls. `read` parses a
/// `Schedule`.
template <class Bound, class Schedule, llvm::Expected<Schedule> (*read)(llvm::StringRef)>
class TypedTarget : public BoundTarget, public std::enable_shared_from_this<Bound> {
 public:
  llvm::Expected<std::unique_ptr<BoundSchedule>> parse(llvm::StringRef text) override {
    auto schedule = read(text);
    if (!schedule) return schedule.takeError();
    return std::make_unique<TypedSchedule>(this->shared_from_this(), std::move(*schedule));
  }

  void forEachLegal(const KnobSpace& space,
                    llvm::function_ref<void(const BoundSchedule&, llvm::ArrayRef<int>)> visit) override {
    const auto bound = this->shared_from_this();
    Schedule schedule = llvm::cantFail(read(space.strategy));
    std::vector<int> places(space.knobs.size());
    for (const KnobValues& knob : space.knobs) setKnob(schedule, knob.name, knob.values[0]);
    size_t changed = 0;
    do {
      if (!bound->whyIllegal(schedule)) visit(TypedSchedule(bound, schedule), places);
      // The next combination: the last knob that has another value, and the first value of those behind it.
      for (changed = space.knobs.size(); changed-- > 0;) {
        const KnobValues& knob = space.knobs[changed];
        const bool hasNext = ++places[changed] < int(knob.values.size());
        if (!hasNext) places[changed] = 0;
        setKnob(schedule, knob.name, knob.values[size_t(places[changed])]);
        if (hasNext) break;
      }
    } while (changed < space.knobs.size());
  }

  // Defaults; a target with several kinds of kernels, or with differing devices, replaces them.
  std::string family(const Schedule&) { return {}; }
  std::optional<std::string> fallback(const Schedule&) { return std::nullopt; }

 private:
  class TypedSchedule : public BoundSchedule {
   public:
    TypedSchedule(std::shared_ptr<Bound> bound, Schedule schedule)
        : bound_(std::move(bound)), schedule_(std::move(schedule)) {}
    std::string text() const override { return schedule_.text(); }
    std::optional<std::string> whyIllegal() const override { return bound_->whyIllegal(schedule_); }
    double predict(const Workload& workload) const override { return bound_->predict(schedule_, workload); }
    std::string family() const override { return bound_->family(schedule_); }
    std::optional<std::string> fallback() const override { return bound_->fallback(schedule_); }
    llvm::Expected<std::string> emit(llvm::StringRef stage) const override {
      return bound_->emit(schedule_, stage);
    }
    llvm::Expected<std::vector<PassText>> passes(llvm::ArrayRef<std::string> shown) const override {
      return bound_->passes(schedule_, shown);
    }
    llvm::Expected<CompiledKernel> compile(llvm::StringRef symbol, const CubinOptions& cubin) const override {
      return bound_->compile(schedule_, symbol, cubin);
    }

   private:
    std::shared_ptr<Bound> bound_;
    Schedule schedule_;
  };
};

}  // namespace normc::codegen
