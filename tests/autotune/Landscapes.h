// Landscapes that were measured (bench/landscape), and a lab that answers from them by a simulated clock.
//
// A file begins with lines `# ...`, `screened_rows N`, `rows N` and `seconds SCREENED WHOLE`, which are those
// of a call of the default. Then each line is a schedule: text, prediction, place in the grid, status, ratios
// to the default when it was screened, quantiles of those in a race (thousandths), and `default` for that
// one. Tabs are between them.
#pragma once

#include <deque>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "autotune/search/Lab.h"
#include "autotune/search/Landscape.h"

namespace normc::tune::test {

struct MeasuredLandscape {
  struct Known {
    Status status = Status::Ok;
    Samples screened = {}, raced = {};  ///< ratios to the default
  };
  std::string name;  ///< of the file
  Landscape landscape;
  std::vector<Known> known;  ///< of each point
  double scale = 1;          ///< rows of the task over those that were screened
  double seconds[2];         ///< of a call of the default, screened and whole

  /// Returns the time of a point in a race over that of the fastest.
  double behindBest(size_t point) const;
};

/// Reads a file. Throws std::runtime_error if it has another form.
MeasuredLandscape readLandscape(const std::string& path);

/// The costs of a machine, in seconds.
struct Costs {
  double making = 0.1;            ///< compiling a candidate, with all processors that are free
  double judging = 0.02;          ///< the first part of the gate
  double start[2] = {0.1, 0.15};  ///< of a process, for screened and for whole calls
};

class MeasuredLab : public Lab {
 public:
  MeasuredLab(const MeasuredLandscape&, const Costs&, uint64_t seed);

  double now() override { return now_; }
  bool stopped() override { return false; }
  void endBy(double time) override { end_ = time; }
  void announce(const std::vector<size_t>& points) override;
  std::vector<Screened> screen(const std::vector<size_t>& points) override;
  double scale() override { return landscape_.scale; }
  std::vector<Samples> heat(const std::vector<size_t>& points, int rounds) override;
  std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override;
  void renew() override { renewing_ = true; }
  double startSeconds() override { return raced_ ? costs_.start[1] : 0; }

 private:
  void pass(double seconds);
  void waitFor(size_t point);
  void start(int kind);
  double sample(size_t point, bool raced);
  std::vector<Samples> rounds(const std::vector<size_t>& points, int rounds, bool raced);

  const MeasuredLandscape& landscape_;
  Costs costs_;
  uint64_t seed_;
  std::deque<size_t> queue_;
  std::map<size_t, size_t> taken_[2];  ///< samples of each point so far
  std::map<size_t, double> madeAt_;
  double makerFree_ = 0, now_ = 0, end_ = std::numeric_limits<double>::infinity();
  int running_ = -1;  ///< what the present process measures
  bool renewing_ = false, raced_ = false;
};

}  // namespace normc::tune::test
