#include "bench/cpu/Report.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "bench/cpu/ShapeTable.h"

namespace normc::bench {
namespace {

/// Values over the number of features; a line for each norm.
using Lines = std::map<std::string, std::map<int64_t, double>>;

struct Chart {
  std::string name, title, unit;
  bool ratio = false;  ///< 1 is marked
  Lines lines = {};
};

/// Returns the fastest peer; null if none ran.
const Entrant* bestPeer(const Heat& heat, const std::string& norm) {
  const Entrant* best = nullptr;
  for (const Who who : {Who::OneDnn, Who::Torch})
    if (const Entrant* peer = heat.find(who, norm))
      if (!best || median(peer->samples) < median(best->samples)) best = peer;
  return best;
}

plot::Picture pictureOf(const Chart& chart) {
  std::string data, plots;
  int index = 0;
  for (const auto& [norm, line] : chart.lines) {
    std::string rows;
    for (const auto& [features, value] : line)
      rows += std::to_string(features) + " " + std::to_string(value) + "\n";
    const std::string label = "line" + std::to_string(index++);
    data += plot::block(label, rows);
    plots +=
        (plots.empty() ? "plot $" : ", $") + label + " with linespoints title \"" + plot::plain(norm) + "\"";
  }
  if (chart.ratio) plots += ", 1 with lines dashtype 2 linecolor \"black\" notitle";
  return {chart.name, data,
          "set title \"" + plot::plain(chart.title) + "\"\nset xlabel \"features\"\nset ylabel \"" +
              chart.unit + "\"\nset logscale x 2\nset yrange [0:*]\nset key below\n" + plots + "\n"};
}

void write(const std::string& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + file);
}

}  // namespace

std::vector<plot::Picture> pictures(const std::vector<Heat>& heats) {
  std::vector<Chart> charts;  // three for all heats with the same conditions
  for (const Heat& heat : heats) {
    const std::string title = heat.plan.conditions();
    std::string key = std::string(name(heat.plan.entry)) + "-" + std::string(name(heat.plan.data)) + "-" +
                      heat.plan.place + "-" + std::to_string(heat.plan.threads);
    std::ranges::replace(key, ' ', '-');
    auto at = std::ranges::find(charts, key + "-speed", &Chart::name);
    if (at == charts.end()) {
      charts.push_back({key + "-speed", "Speed, " + title, "GB/s"});
      charts.push_back({key + "-copy", "Share of the faster copy, " + title, "copy / normc", true});
      charts.push_back({key + "-peers", "Time over that of the best peer, " + title, "normc / peer", true});
      at = charts.end() - 3;
    }
    Lines &speed = at[0].lines, &share = at[1].lines, &peers = at[2].lines;
    const int64_t features = heat.plan.shape.features;
    for (const Entrant& e : heat.entrants) {
      if (e.who != Who::Ours) continue;
      speed[e.norm][features] = heat.gigabytesPerSecond(e);
      if (const Entrant* copy = heat.fasterCopy(e.traffic)) {
        share[e.norm][features] = median(copy->samples) / median(e.samples);
        speed["copy, " + std::to_string(e.traffic.total()) + " transfers"][features] =
            heat.gigabytesPerSecond(*copy);
      }
      if (const Entrant* peer = bestPeer(heat, e.norm))
        peers[e.norm][features] = median(e.samples) / median(peer->samples);
    }
  }
  std::vector<plot::Picture> all;
  for (const Chart& chart : charts)
    if (std::ranges::any_of(chart.lines, [](const auto& line) { return line.second.size() > 1; }))
      all.push_back(pictureOf(chart));
  return all;
}

void writeReport(const std::string& folder, const std::string& command, const std::vector<Heat>& heats,
                 const Machine& machine, const std::vector<std::string>& peers) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string text = "# " + command + "\n" + machine.text() + "\n";
  for (const std::string& peer : peers) text += "peer: " + peer + "\n";
  for (const Heat& heat : heats) text += "\n" + table(heat);
  text += "\n" + summary(heats) + shapeTables(heats) + notRun(heats);
  nlohmann::json json = toJson(heats, machine, peers);
  for (auto& heat : json["heats"])
    for (auto& entrant : heat["entrants"]) entrant.erase("samples"), entrant.erase("to_norms");
  write(folder + "/report.json", json.dump() + "\n");
  if (auto files = plot::draw(pictures(heats), folder); !files)
    text += "Without pictures: " + llvm::toString(files.takeError()) + "\n";
  write(folder + "/report.txt", text);
}

}  // namespace normc::bench
