// One timed candidate: its plan on the buffers that all candidates share.
#pragma once

#include "autotune/measure/Buffers.h"
#include "autotune/measure/Contestant.h"
#include "autotune/measure/Policy.h"

namespace normc::measure {

class Subject : public Contestant {
 public:
  /// The buffers and the reader outlive it. `reader` runs after each call and is part of the time; null: no
  /// reader.
  Subject(host::Plan plan, const Buffers& buffers, Contestant* reader = nullptr);
  double run(int64_t calls) override;
  /// Runs one call on a set of buffers; on a device it only enqueues.
  void call(int set) const { host::check(normc_execute(plan_.get(), &calls_[size_t(set)])); }
  const host::Plan& plan() const { return plan_; }

 private:
  host::Plan plan_;
  Held workspace_;
  std::vector<normc_args> calls_;  ///< one for each set of buffers
  Contestant* reader_;
  int next_ = 0;
};

}  // namespace normc::measure
