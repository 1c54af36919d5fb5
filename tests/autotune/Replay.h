// A Lab without a machine: its times are given, and its clock counts their cost. The same times
// give the same search, sample for sample.
#pragma once

#include <limits>
#include <map>

#include "autotune/search/Lab.h"
#include "autotune/search/Landscape.h"

namespace normc::tune {

class Replay : public Lab {
 public:
  /// The known results of one point: why it failed, or its times and those of the default in the same rounds.
  struct Known {
    Status status = Status::Ok;
    std::string reason = {};
    Samples samples = {}, reference = {};
  };
  /// `making`: seconds that the clock counts for compiling and judging one candidate. A point of which
  /// nothing is known is refused; the default has to have one.
  Replay(const Landscape&, std::map<size_t, Known> known, double making = 0.1);

  double now() override { return now_; }
  bool stopped() override { return false; }
  void endBy(double time) override { end_ = time; }
  std::vector<Screened> screen(const std::vector<size_t>& points) override;
  std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override;

 private:
  double next(size_t point);

  const Landscape& landscape_;
  std::map<size_t, Known> known_;
  std::map<size_t, size_t> taken_;  ///< samples of each point so far
  double making_, now_ = 0, end_ = std::numeric_limits<double>::infinity();
};

}  // namespace normc::tune
