// The schedules of one problem as a search sees them: points on a grid, each with a
// text, a prediction and its neighbours. It knows no compiler, so that a search can
// be replayed from records, and run where there is none.
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
  std::vector<int> at = {};  ///< the space, then the place of each knob's value in its list
  std::string family = {};   ///< Target::family: words for what kind of kernel it is
};

class Landscape {
 public:
  /// `byDefault`: the point that the runtime would choose untuned.
  Landscape(std::vector<Point> points, size_t byDefault);

  size_t size() const { return points_.size(); }
  const Point& operator[](size_t i) const { return points_[i]; }
  size_t byDefault() const { return byDefault_; }
  std::optional<size_t> find(std::string_view generator, std::string_view schedule) const;

  /// One step along one knob, to the next value that is legal there; ascending by prediction.
  std::vector<size_t> neighbours(size_t) const;
  /// All points, the best prediction first; ties in the order of their texts.
  const std::vector<size_t>& ranked() const { return ranked_; }
  /// Knobs in which two points differ; the strategy and the generator are one.
  int knobDistance(size_t a, size_t b) const;
  /// The best prediction of each kind (generator, space and family), in the order of ranked().
  std::vector<size_t> bestOfKinds() const;
  /// Words that only one of two points' families has, their generator and space beside them; 0: one kind.
  int familyDistance(size_t a, size_t b) const;
  /// Whether `a` is simpler than `b`: the default, then fewer knobs away from it, then the prediction, then
  /// the text. Ties between equally fast schedules are decided by it, the same way each time.
  bool simpler(size_t a, size_t b) const;

 private:
  std::vector<Point> points_;
  size_t byDefault_;
  std::map<std::pair<std::string, std::string>, size_t> byText_;
  std::map<std::vector<int>, size_t> byPlace_;
  std::vector<size_t> ranked_;
  std::vector<int> ends_;  ///< beyond the largest place on each axis
};

}  // namespace normc::tune
