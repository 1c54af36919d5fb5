// One candidate, timed: its plan on the buffers that all candidates share.
#pragma once

#include <optional>

#include "autotune/measure/Buffers.h"
#include "autotune/measure/Contestant.h"
#include "autotune/measure/Policy.h"

namespace normc::measure {

class Subject : public Contestant {
 public:
  /// Buffers and reader outlive it. `reader` is run after each call, as part of it; null: nobody reads.
  Subject(host::Plan plan, const Buffers& buffers, const Extents&, Contestant* reader);
  double run(int64_t calls) override;

 private:
  host::Plan plan_;
  Memory workspace_;
  std::vector<host::Call> calls_;  ///< one for each set of buffers
  Contestant* reader_;
  size_t next_ = 0;
};

}  // namespace normc::measure
