#include "tests/autotune/Landscapes.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace normc::tune::test {
namespace {

constexpr int kScreenRounds = 5, kFirstRounds = 3;
constexpr double kSample = 200e-6;  ///< the least seconds of a sample

std::vector<std::string> fieldsOf(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  fields.resize(7);
  return fields;
}

template <typename Number>
std::vector<Number> numbersIn(const std::string& text) {
  std::istringstream in(text);
  std::vector<Number> numbers;
  for (Number number; in >> number;) numbers.push_back(number);
  return numbers;
}

Samples ratiosIn(const std::string& text) {
  Samples ratios = numbersIn<double>(text);
  for (double& ratio : ratios) ratio /= 1000;
  return ratios;
}

Status statusOf(const std::string& text) {
  for (const Status status :
       {Status::Ok, Status::Refused, Status::Wrong, Status::Crashed, Status::Hung, Status::Duplicate})
    if (text == name(status)) return status;
  return Status::Refused;
}

/// Returns a number in [0, 1) that looks random (splitmix64).
double hashed(uint64_t n) {
  n += 0x9e3779b97f4a7c15;
  n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9;
  n = (n ^ (n >> 27)) * 0x94d049bb133111eb;
  return double((n ^ (n >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

MeasuredLandscape readLandscape(const std::string& path) {
  std::ifstream file(path);
  std::vector<Point> points;
  std::vector<MeasuredLandscape::Known> known;
  double rows = 1, screened = 1, seconds[2] = {0, 0};
  size_t byDefault = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "#") continue;
    if (word == "screened_rows")
      words >> screened;
    else if (word == "rows")
      words >> rows;
    else if (word == "seconds")
      words >> seconds[0] >> seconds[1];
    else {
      const std::vector<std::string> fields = fieldsOf(line);
      if (fields[6] == "default") byDefault = points.size();
      points.push_back({"mlir", fields[0], std::stod(fields[1]), numbersIn<int>(fields[2])});
      known.push_back({statusOf(fields[3]), ratiosIn(fields[4]), ratiosIn(fields[5])});
      if (known.back().status == Status::Ok && (known.back().screened.empty() || known.back().raced.empty()))
        known.back().status = Status::Refused;  // not measured
    }
  }
  if (points.empty() || !(seconds[1] > 0)) throw std::runtime_error(path + " is no landscape");
  MeasuredLandscape all{std::filesystem::path(path).stem().string(),
                        Landscape(std::move(points), byDefault),
                        std::move(known),
                        rows / screened,
                        {seconds[0], seconds[1]}};
  return all;
}

double MeasuredLandscape::behindBest(size_t point) const {
  double best = 1;
  for (const Known& one : known)
    if (one.status == Status::Ok) best = std::min(best, measure::median(one.raced));
  return measure::median(known[point].raced) / best;
}

MeasuredLab::MeasuredLab(const MeasuredLandscape& landscape, const Costs& costs, uint64_t seed)
    : landscape_(landscape), costs_(costs), seed_(seed) {}

/// The time passes for the processor that makes candidates, too.
void MeasuredLab::pass(double seconds) {
  now_ += seconds;
  while (!queue_.empty() && makerFree_ < now_) {
    const size_t point = queue_.front();
    queue_.pop_front();
    if (!madeAt_.contains(point)) madeAt_[point] = makerFree_ += costs_.making;
  }
  if (queue_.empty()) makerFree_ = std::max(makerFree_, now_);
}

void MeasuredLab::announce(const std::vector<size_t>& points) {
  pass(0);
  queue_.assign(points.begin(), points.end());
}

void MeasuredLab::waitFor(size_t point) {
  if (!madeAt_.contains(point)) madeAt_[point] = makerFree_ = std::max(makerFree_, now_) + costs_.making;
  pass(std::max(0.0, madeAt_[point] - now_));
}

void MeasuredLab::start(int kind) {
  if (running_ == kind && !renewing_) return;
  running_ = kind;
  renewing_ = false;
  pass(costs_.start[kind]);
}

/// Returns the next time of a point: those of screening in their order, of a race one of their distribution.
double MeasuredLab::sample(size_t point, bool raced) {
  const MeasuredLandscape::Known& one = landscape_.known[point];
  const Samples& ratios = raced ? one.raced : one.screened;
  const size_t turn = taken_[raced][point]++;
  double ratio = ratios[(turn + seed_) % ratios.size()];
  if (raced) {
    const double at = hashed((seed_ << 48) + (uint64_t(point) << 24) + turn) * double(ratios.size() - 1);
    const size_t below = size_t(at);
    ratio = std::lerp(ratios[below], ratios[std::min(below + 1, ratios.size() - 1)], at - double(below));
  }
  const double seconds = landscape_.seconds[raced] * ratio;
  pass(seconds < kSample ? 1.25 * kSample : 2 * seconds);
  return seconds;
}

std::vector<Screened> MeasuredLab::screen(const std::vector<size_t>& points) {
  std::vector<Screened> results;
  std::deque<size_t> next(points.begin(), points.end());
  queue_.insert(queue_.begin(), next.begin(), next.end());
  for (const size_t point : points) {
    if (!results.empty() && now_ >= end_) break;
    Screened one{.point = point, .status = landscape_.known[point].status};
    waitFor(point);
    if (one.status == Status::Ok) {
      start(0);
      pass(costs_.judging);
      for (int round = 0; round < (scale() > 1 ? kFirstRounds : kScreenRounds); ++round) {
        one.samples.push_back(sample(point, 0));
        one.reference.push_back(sample(landscape_.landscape.byDefault(), 0));
      }
    } else {
      one.reason = "as it was measured";
    }
    results.push_back(std::move(one));
  }
  return results;
}

std::vector<Samples> MeasuredLab::rounds(const std::vector<size_t>& points, int count, bool raced) {
  std::vector<Samples> samples(points.size());
  for (int round = 0; round < count; ++round) {
    const double begin = now_;
    for (size_t i = 0; i < points.size(); ++i) samples[i].push_back(sample(points[i], raced));
    if (2 * now_ - begin > end_) break;
  }
  return samples;
}

std::vector<Samples> MeasuredLab::heat(const std::vector<size_t>& points, int count) {
  start(0);
  return rounds(points, count, /*raced=*/false);
}

std::vector<Samples> MeasuredLab::race(const std::vector<size_t>& points, int count) {
  start(1);
  raced_ = true;
  return rounds(points, count, /*raced=*/true);
}

}  // namespace normc::tune::test
