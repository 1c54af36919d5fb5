// A lab without a machine: it answers from recorded times, and its clock counts what
// they cost. The same records give the same search, sample for sample.
#pragma once

#include <map>

#include "autotune/search/Lab.h"
#include "autotune/search/Landscape.h"

namespace normc::tune {

class Replay : public Lab {
 public:
  /// What was recorded of one point: why it failed, or times and those of the default beside them.
  struct Known {
    Status status = Status::Ok;
    std::string reason = {};
    Samples samples = {}, reference = {};
  };
  /// `making`: seconds that the clock counts for making and judging one candidate. A point that is not
  /// known is refused; the default has to be known.
  Replay(const Landscape&, std::map<size_t, Known> known, double making = 0.1);

  /// What the records of one task say of a landscape's points.
  static std::map<size_t, Known> known(const Landscape&, const std::vector<Record>&, const Task&,
                                       const Device&);

  double now() override { return now_; }
  bool stopped() override { return false; }
  std::vector<Screened> screen(const std::vector<size_t>& points) override;
  std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override;

 private:
  double next(size_t point);

  const Landscape& landscape_;
  std::map<size_t, Known> known_;
  std::map<size_t, size_t> taken_;  ///< samples of each point so far
  double making_, now_ = 0;
};

}  // namespace normc::tune
