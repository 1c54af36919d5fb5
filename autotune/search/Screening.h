// The first part of a search: which candidates are measured briefly, and in which order.
//
// After the default and the seeds, the search climbs: it measures the neighbours of the fastest candidates of
// each space, those first that are expected to be fastest, and looks again after each batch. One strategy may
// have the best schedule where another has many that are nearly as good. Where the lab measures fewer
// rows than the task has, the better half is measured again with twice as many rounds, then the better half
// of that.
#pragma once

#include <set>
#include <vector>

#include "autotune/search/Search.h"

namespace normc::tune {

/// The shares of the budget after which each stage ends; the rest is for confirming the winner.
struct Stages {
  double screening, heats, race;
};

/// Returns the shares by Lab::scale(). Processes start slowly where tensors are large, so that races and
/// confirmations need more time there.
Stages stagesFor(double scale);

class Screening {
 public:
  /// Results are appended to the outcome. All arguments outlive the object.
  Screening(const Landscape&, Lab&, const SearchOptions&, Outcome&);

  /// Measures the default. False if it failed, which the outcome says.
  bool measureDefault();
  /// Measures seeds and neighbours of leaders; with `exhaustive` all points.
  void run();
  /// Returns the fastest correct candidates so far.
  std::vector<const Screened*> leaders(size_t count) const;
  bool rejected(size_t point) const;
  /// Returns the number of candidates that were or are to be measured.
  size_t total() const { return total_; }

 private:
  bool mayScreen();
  bool timeLeft(double share) const;
  bool screenAll(const std::vector<size_t>& points);
  void climb();
  std::vector<size_t> frontier(size_t ofEach) const;
  std::vector<size_t> hopeful() const;
  void announce(const std::vector<size_t>& queue, size_t begin);
  void runHeats();

  const Landscape& landscape_;
  Lab& lab_;
  const SearchOptions& options_;
  Outcome& outcome_;
  Stages stages_;
  std::set<size_t> seen_;
  size_t total_ = 0;
  double candidateSeconds_ = 0;  ///< of the last ones, the mean
};

}  // namespace normc::tune
