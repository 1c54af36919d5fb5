// One candidate, timed: its plan on the buffers that all candidates share.
#pragma once

#include <optional>

#include "autotune/measure/Buffers.h"
#include "autotune/measure/Contestant.h"
#include "autotune/measure/Policy.h"

namespace normc::measure {

class Subject : public Contestant {
 public:
  /// Buffers, reader and device outlive it. `reader` is run after each call, as part of it; null: nobody
  /// reads. `device`: that of plan and buffers.
  Subject(host::Plan plan, const Buffers& buffers, const Extents&, Contestant* reader,
          const gate::CudaDevice* device = nullptr);
  double run(int64_t calls) override;
  /// One call on a set of buffers; on a device it is only enqueued.
  void call(int set) { plan_(calls_[size_t(set)]); }

 private:
  host::Plan plan_;
  Held workspace_;
  std::vector<host::Call> calls_;  ///< one for each set of buffers
  Contestant* reader_;
  size_t next_ = 0;
};

}  // namespace normc::measure
