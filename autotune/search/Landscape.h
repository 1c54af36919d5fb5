// The search space of one problem: points on a grid, each with a text, a prediction and its neighbours. It
// does not use the compiler, so that a search can be replayed from records, and run on a machine without a
// compiler.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace normc::tune {

struct Point {
  std::string generator;     ///< "mlir"
  std::string schedule;      ///< canonical text
  double predicted = 0;      ///< smaller is expected to be faster
  std::vector<int> at = {};  ///< the space, then the index of each knob's value in its list
  std::string family = {};   ///< Target::family: words for the kind of kernel
};

class Landscape {
 public:
  /// `byDefault`: the point that is used without tuning.
  Landscape(std::vector<Point> points, size_t byDefault);

  size_t size() const { return points_.size(); }
  const Point& operator[](size_t i) const { return points_[i]; }
  size_t byDefault() const { return byDefault_; }
  std::optional<size_t> find(std::string_view generator, std::string_view schedule) const;

  /// Returns the points one step along one knob, at the next value that is legal there; ascending by
  /// prediction.
  std::vector<size_t> neighbours(size_t) const;
  /// Returns all points, the best prediction first; ties in the order of their texts.
  const std::vector<size_t>& ranked() const { return ranked_; }
  /// Returns the number of knobs in which two points differ; strategy and generator count as one.
  int knobDistance(size_t a, size_t b) const;
  /// Returns the best prediction of each kind (generator, space and family), in the order of ranked().
  std::vector<size_t> bestOfKinds() const;
  /// Returns the number of words that only one of the two points has in its family, generator and space; 0:
  /// one kind.
  int familyDistance(size_t a, size_t b) const;
  /// True if `a` is simpler than `b`: the default first, then fewer knobs different from it, then the
  /// prediction, then the text. It decides between equally fast schedules, the same way each time.
  bool simpler(size_t a, size_t b) const;

 private:
  std::vector<Point> points_;
  size_t byDefault_;
  std::map<std::pair<std::string, std::string>, size_t> byText_;
  std::map<std::vector<int>, size_t> byPlace_;
  std::vector<size_t> ranked_;
  std::vector<int> ends_;  ///< one past the largest index on each axis
};

}  // namespace normc::tune
