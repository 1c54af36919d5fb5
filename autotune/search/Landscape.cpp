#include "autotune/search/Landscape.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <set>
#include <sstream>
#include <tuple>

namespace normc::tune {

Landscape::Landscape(std::vector<Point> points, size_t byDefault)
    : points_(std::move(points)), byDefault_(byDefault) {
  assert(byDefault_ < points_.size());
  for (size_t i = 0; i < points_.size(); ++i) {
    const Point& point = points_[i];
    byText_.emplace(std::pair(point.generator, point.schedule), i);
    byPlace_.emplace(point.at, i);
    ranked_.push_back(i);
    if (ends_.size() < point.at.size()) ends_.resize(point.at.size());
    for (size_t axis = 0; axis < point.at.size(); ++axis)
      ends_[axis] = std::max(ends_[axis], point.at[axis] + 1);
  }
  std::sort(ranked_.begin(), ranked_.end(), [&](size_t a, size_t b) {
    return std::tie(points_[a].predicted, points_[a].schedule) <
           std::tie(points_[b].predicted, points_[b].schedule);
  });
}

std::optional<size_t> Landscape::find(std::string_view generator, std::string_view schedule) const {
  const auto at = byText_.find({std::string(generator), std::string(schedule)});
  return at == byText_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<size_t> Landscape::neighbours(size_t of) const {
  std::vector<size_t> list;
  for (size_t axis = 1; axis < points_[of].at.size(); ++axis)
    for (const int step : {-1, 1}) {
      std::vector<int> place = points_[of].at;
      while ((place[axis] += step) >= 0 && place[axis] < ends_[axis]) {
        const auto found = byPlace_.find(place);
        if (found == byPlace_.end()) continue;
        list.push_back(found->second);
        break;
      }
    }
  std::sort(list.begin(), list.end(), [&](size_t a, size_t b) {
    return std::tie(points_[a].predicted, points_[a].schedule) <
           std::tie(points_[b].predicted, points_[b].schedule);
  });
  return list;
}

int Landscape::knobDistance(size_t one, size_t other) const {
  const std::vector<int>&a = points_[one].at, &b = points_[other].at;
  int differing = std::abs(int(a.size()) - int(b.size()));
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) differing += a[i] != b[i];
  return differing;
}

std::vector<size_t> Landscape::bestOfKinds() const {
  std::set<std::tuple<std::string_view, int, std::string_view>> seen;
  std::vector<size_t> list;
  for (const size_t i : ranked_)
    if (seen.emplace(points_[i].generator, points_[i].at.at(0), points_[i].family).second) list.push_back(i);
  return list;
}

int Landscape::familyDistance(size_t one, size_t other) const {
  const auto words = [](const std::string& text) {
    std::istringstream stream(text);
    return std::set<std::string>(std::istream_iterator<std::string>(stream), {});
  };
  const Point &a = points_[one], &b = points_[other];
  const int elsewhere = (a.generator != b.generator) + (a.at.at(0) != b.at.at(0));
  if (a.family == b.family) return elsewhere;
  const std::set<std::string> left = words(a.family), right = words(b.family);
  std::vector<std::string> alone;
  std::set_symmetric_difference(left.begin(), left.end(), right.begin(), right.end(),
                                std::back_inserter(alone));
  return elsewhere + int(alone.size());
}

bool Landscape::simpler(size_t a, size_t b) const {
  const int here = knobDistance(a, byDefault_), there = knobDistance(b, byDefault_);
  return std::tie(here, points_[a].predicted, points_[a].schedule) <
         std::tie(there, points_[b].predicted, points_[b].schedule);
}

}  // namespace normc::tune
