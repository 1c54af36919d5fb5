#include "bench/cpu/ShapeTable.h"

#include <algorithm>
#include <map>
#include <set>

#include "bench/kit/Text.h"

namespace normc::bench {
namespace {

struct Line {
  std::string head;
  std::map<int64_t, std::pair<Samples, Samples>> pairs;  ///< by features: ours and the peer's
};

std::vector<Line> linesOf(const std::vector<Heat>& heats, Runner peer) {
  std::vector<Line> lines;
  for (const Heat& heat : heats)
    for (const Entrant& ours : heat.entrants) {
      const Entrant* const other = ours.runner == Runner::Ours ? heat.find(peer, ours.norm) : nullptr;
      if (!other) continue;
      const std::string problem =
          ProblemText{.norm = ours.norm, .entry = heat.plan.entry, .data = heat.plan.data}.head();
      const std::string head =
          format("%-36s %-12s %2d", problem.c_str(), heat.plan.place.c_str(), heat.plan.threads);
      auto at = std::ranges::find(lines, head, &Line::head);
      if (at == lines.end()) at = lines.insert(at, Line{head, {}});
      at->pairs[heat.plan.shape.features] = {ours.samples, other->samples};
    }
  std::ranges::sort(lines, {}, &Line::head);
  return lines;
}

}  // namespace

std::string shapeTable(const std::vector<Heat>& heats, Runner peer) {
  const std::vector<Line> lines = linesOf(heats, peer);
  if (lines.empty()) return {};
  std::set<int64_t> features;
  for (const Line& line : lines)
    for (const auto& [count, pair] : line.pairs) features.insert(count);
  std::string result =
      format("Time of normc over %s, by features:\n  %-36s %-12s %2s", name(peer), "problem", "place", "T");
  for (const int64_t count : features) result += format(" %6lld", static_cast<long long>(count));
  result += "  mean\n";
  for (const Line& line : lines) {
    result += "  " + line.head;
    std::vector<std::pair<Samples, Samples>> all;
    for (const int64_t count : features) {
      const auto at = line.pairs.find(count);
      if (at == line.pairs.end()) {
        result += format(" %6s", "-");
        continue;
      }
      all.push_back(at->second);
      result += format(" %6.2f", medianRatio(at->second.first, at->second.second));
    }
    const Ratio mean = geometricMean(all);
    result += format("  %.2f [%.2f, %.2f]\n", mean.value, mean.low, mean.high);
  }
  return result;
}

std::string shapeTables(const std::vector<Heat>& heats) {
  std::string text = shapeTable(heats, Runner::Apart);
  if (text.empty()) return text;
  for (const Runner peer : {Runner::OneDnn, Runner::Torch, Runner::TorchCompiled})
    text += shapeTable(heats, peer);
  return text;
}

}  // namespace normc::bench
