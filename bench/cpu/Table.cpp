#include "bench/cpu/Table.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>

#include "bench/kit/Text.h"

namespace normc::bench {
namespace {

/// Our own norms that the others are set against: what a transformer uses today, and what needs a batch.
const char* const kYardsticks[] = {"layer_norm", "batch_norm"};

std::string text(const Ratio& ratio) {
  return format("%.2f [%.2f, %.2f]", ratio.value, ratio.low, ratio.high);
}

/// Time of `ours` over that of `other`; a dash where there is none.
std::string against(const Entrant& ours, const Entrant* other) {
  return other && other != &ours ? text(pairedRatio(ours.samples, other->samples)) : "-";
}

std::string copies(const Heat& heat) {
  std::string result;
  for (const Entrant& e : heat.entrants) {
    if (e.runner == Runner::CachedCopy)
      result += format("  copy that reads %d, writes %d: %.1f GB/s", e.traffic.reads, e.traffic.writes,
                       heat.gigabytesPerSecond(e));
    if (e.runner == Runner::StreamingCopy)
      result += format(", streaming %.1f GB/s\n", heat.gigabytesPerSecond(e));
  }
  return result;
}

/// Says where a peer is not comparable: oneDNN's code that is not compiled for the processor.
std::string remarks(const Heat& heat) {
  std::string result;
  for (const Entrant& e : heat.entrants)
    if (e.runner == Runner::OneDnn && e.implementation.find("jit") == std::string::npos)
      result += "  oneDNN has no optimised " + e.norm + " here: it runs " + e.implementation + "\n";
  return result;
}

const Runner kPeers[] = {Runner::Halide, Runner::Before, Runner::Apart,
                         Runner::OneDnn, Runner::Torch,  Runner::TorchCompiled};

/// Returns the peers that have a column: oneDNN and PyTorch, and those others that ran.
std::vector<Runner> peersOf(const Heat& heat) {
  std::vector<Runner> peers;
  for (Runner peer : kPeers) {
    const bool always = peer == Runner::OneDnn || peer == Runner::Torch;
    if (always || std::ranges::any_of(heat.entrants, [&](const Entrant& e) { return e.runner == peer; }))
      peers.push_back(peer);
  }
  return peers;
}

nlohmann::json entrantJson(const Heat& heat, const Entrant& e) {
  nlohmann::json result = {{"who", name(e.runner)},
                           {"reads", e.traffic.reads},
                           {"writes", e.traffic.writes},
                           {"seconds", median(e.samples)},
                           {"gigabytes_per_second", heat.gigabytesPerSecond(e)},
                           {"samples", e.samples}};
  if (!e.norm.empty()) result["norm"] = e.norm;
  if (!e.implementation.empty()) result["implementation"] = e.implementation;
  if (e.runner != Runner::Ours) return result;
  if (const Entrant* copy = heat.fasterCopy(e.traffic))
    result["to_copy"] = toJson(pairedRatio(e.samples, copy->samples));
  for (const Entrant& other : heat.entrants) {
    const bool ours = other.runner == Runner::Ours, same = other.norm == e.norm;
    if (ours == same) continue;  // itself, or a contestant of another norm
    auto& to = ours ? result["to_norms"][other.norm] : result["to_peers"][name(other.runner)];
    to = toJson(pairedRatio(e.samples, other.samples));
  }
  return result;
}

}  // namespace

std::string table(const Heat& heat) {
  size_t rounds = 0;
  for (const Entrant& e : heat.entrants) rounds = e.samples.size();
  std::string result = heat.plan.text() + "   (a tensor has " + bytesText(heat.plan.tensorBytes()) + "; " +
                       std::to_string(rounds) + " rounds)\n";
  if (heat.busyCores > 0.1)
    result += format("  other programs kept %.1f cores busy meanwhile\n", heat.busyCores);
  result += copies(heat) + remarks(heat);
  const std::vector<Runner> peers = peersOf(heat);
  result += format("  %-20s %2s %10s %7s  %-20s", "norm", "T", "us", "GB/s", "time / copy");
  for (Runner peer : peers) result += format(" / %-18s", name(peer));
  for (const char* norm : kYardsticks) result += format(" / %-18s", norm);
  result.erase(result.find_last_not_of(' ') + 1);
  result += "\n";
  for (const Entrant& e : heat.entrants) {
    if (e.runner != Runner::Ours) continue;
    result +=
        format("  %-20s %2d %10.1f %7.1f  %-20s", e.norm.c_str(), e.traffic.total(), median(e.samples) * 1e6,
               heat.gigabytesPerSecond(e), against(e, heat.fasterCopy(e.traffic)).c_str());
    for (Runner peer : peers) result += format(" %-20s", against(e, heat.find(peer, e.norm)).c_str());
    for (const char* norm : kYardsticks)
      result += format(" %-20s", against(e, heat.find(Runner::Ours, norm)).c_str());
    result.erase(result.find_last_not_of(' ') + 1);
    result += "\n";
  }
  return result;
}

std::string summary(const std::vector<Heat>& heats) {
  // By what is compared, in the order of the heats.
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::pair<Samples, Samples>>> pairs;
  for (const Heat& heat : heats)
    for (const Entrant& e : heat.entrants) {
      if (e.runner != Runner::Ours) continue;
      for (Runner peer : kPeers) {
        const Entrant* other = heat.find(peer, e.norm);
        if (!other) continue;
        const std::string problem =
            ProblemText{.norm = e.norm, .entry = heat.plan.entry, .data = heat.plan.data}.head();
        const std::string key =
            format("%-36s %-12s %2d %-8s / %-8s", problem.c_str(), heat.plan.place.c_str(), heat.plan.threads,
                   heat.plan.threads == 1 ? "thread" : "threads", name(peer));
        if (!pairs.count(key)) order.push_back(key);
        pairs[key].emplace_back(e.samples, other->samples);
      }
    }
  if (order.empty()) return {};
  std::string result = "Geometric means of normc's time over the peer's, all features:\n";
  for (const std::string& key : order)
    result += "  " + key + " " + text(geometricMean(pairs[key])) + "   of " +
              std::to_string(pairs[key].size()) + "\n";
  return result;
}

std::string cliffs(const std::vector<Heat>& heats) {
  // Heats that differ in their number of features alone; of a norm at each, seconds for an element.
  std::vector<std::string> order;
  std::map<std::string, std::map<int64_t, std::map<std::string, double>>> groups;
  for (const Heat& heat : heats) {
    const HeatPlan& plan = heat.plan;
    const std::string key = plan.conditions();
    if (!groups.count(key)) order.push_back(key);
    auto& norms = groups[key][plan.shape.features];
    for (const Entrant& e : heat.entrants)
      if (e.runner == Runner::Ours) norms[e.norm] = median(e.samples) / double(plan.shape.elements());
  }
  std::string result;
  for (const std::string& key : order) {
    const auto& sizes = groups[key];
    std::map<std::string, double> worst;
    std::string rows;
    for (auto here = sizes.begin(); here != sizes.end(); ++here) {
      if (here->first % kAligned == 0) continue;
      auto isAligned = [](const auto& size) { return size.first % kAligned == 0; };
      const auto below = std::find_if(std::make_reverse_iterator(here), sizes.rend(), isAligned);
      const auto above = std::find_if(here, sizes.end(), isAligned);
      std::string row;
      for (const auto& [norm, seconds] : here->second) {
        double best = 0;
        const auto take = [&](const auto& norms) {
          if (const auto at = norms.find(norm); at != norms.end() && (best == 0 || at->second < best))
            best = at->second;
        };
        if (below != sizes.rend()) take(below->second);
        if (above != sizes.end()) take(above->second);
        if (best == 0) continue;
        worst[norm] = std::max(worst[norm], seconds / best);
        row += format("  %s %.2f", norm.c_str(), seconds / best);
      }
      if (!row.empty()) rows += format("  %6lld", static_cast<long long>(here->first)) + row + "\n";
    }
    if (rows.empty()) continue;
    result += "Time for an element over that of the better multiple of " + std::to_string(kAligned) +
              " beside it, " + key + ":\n" + rows + "   worst";
    for (const auto& [norm, ratio] : worst) result += format("  %s %.2f", norm.c_str(), ratio);
    result += "\n";
  }
  return result;
}

std::string notRun(const std::vector<Heat>& heats) {
  std::set<std::string> seen;
  std::string result;
  for (const Heat& heat : heats)
    for (const std::string& reason : heat.notRun)
      if (seen.insert(reason).second) result += "  " + reason + "\n";
  return result.empty() ? result : "Not run:\n" + result;
}

/// Returns the day in UTC, as `2026-01-31`.
static std::string today() {
  const std::chrono::year_month_day day{
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
  return format("%d-%02u-%02u", int(day.year()), unsigned(day.month()), unsigned(day.day()));
}

nlohmann::json toJson(const std::vector<Heat>& heats, const Machine& machine,
                      const std::vector<std::string>& peers) {
  nlohmann::json result = {{"schema", 1},
                           {"machine",
                            {{"processor", machine.processor},
                             {"processors", machine.processors},
                             {"second_cache", machine.secondCache},
                             {"last_cache", machine.lastCache},
                             {"isa", normc_cpu_isa()}}},
                           {"normc", normc_version()},
                           {"day", today()},
                           {"peers", peers},
                           {"heats", nlohmann::json::array()}};
  for (const Heat& heat : heats) {
    const HeatPlan& plan = heat.plan;
    nlohmann::json entrants = nlohmann::json::array();
    for (const Entrant& e : heat.entrants) entrants.push_back(entrantJson(heat, e));
    result["heats"].push_back({{"entry", name(plan.entry)},
                               {"dtype", name(plan.data)},
                               {"segments", plan.shape.segments},
                               {"rows", plan.shape.rows},
                               {"features", plan.shape.features},
                               {"layout", name(plan.shape.layout)},
                               {"threads", plan.threads},
                               {"place", plan.place},
                               {"busy_cores_of_others", heat.busyCores},
                               {"entrants", entrants},
                               {"not_run", heat.notRun}});
  }
  return result;
}

}  // namespace normc::bench
