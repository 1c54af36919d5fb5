#include "bench/Report.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

namespace normc::bench {
namespace {

/// The values of one norm in a plot, by number of features.
using Line = std::map<int64_t, double>;

/// Heats that differ in their number of features alone.
struct Group {
  std::string key, title;
  std::map<std::string, Line> speed, share, peers;
};

double speedOf(const Entrant& e, const HeatPlan& plan) {
  return double(e.traffic.total()) * double(plan.tensorBytes()) / median(e.samples) * 1e-9;
}

/// Returns the fastest peer; null if none ran.
const Entrant* bestPeer(const Heat& heat, const std::string& norm) {
  const Entrant* best = nullptr;
  for (const Who who : {Who::OneDnn, Who::Torch})
    if (const Entrant* peer = heat.find(who, norm))
      if (!best || median(peer->samples) < median(best->samples)) best = peer;
  return best;
}

Group& groupOf(std::vector<Group>& groups, const HeatPlan& plan) {
  std::string place = plan.place;
  std::replace(place.begin(), place.end(), ' ', '-');
  const std::string key = std::string(name(plan.entry)) + "-" + std::string(name(plan.data)) + "-" + place +
                          "-" + std::to_string(plan.threads);
  for (Group& group : groups)
    if (group.key == key) return group;
  groups.push_back({key,
                    std::string(name(plan.entry)) + " " + std::string(name(plan.data)) + ", " + plan.place +
                        ", " + std::to_string(plan.threads) + (plan.threads == 1 ? " thread" : " threads"),
                    {},
                    {},
                    {}});
  return groups.back();
}

plot::Picture pictureOf(const std::string& name, const std::string& title, const std::string& unit,
                        const std::map<std::string, Line>& lines, bool one) {
  std::string data, plots;
  int index = 0;
  for (const auto& [norm, line] : lines) {
    std::string rows;
    for (const auto& [features, value] : line)
      rows += std::to_string(features) + " " + std::to_string(value) + "\n";
    const std::string label = "line" + std::to_string(index++);
    data += plot::block(label, rows);
    plots +=
        (plots.empty() ? "plot $" : ", $") + label + " with linespoints title \"" + plot::plain(norm) + "\"";
  }
  if (one) plots += ", 1 with lines dashtype 2 linecolor \"black\" notitle";
  return {name, data,
          "set title \"" + plot::plain(title) + "\"\nset xlabel \"features\"\nset ylabel \"" + unit +
              "\"\nset logscale x 2\nset yrange [0:*]\nset key below\n" + plots + "\n"};
}

void write(const std::string& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + file);
}

}  // namespace

std::vector<plot::Picture> pictures(const std::vector<Heat>& heats) {
  std::vector<Group> groups;
  for (const Heat& heat : heats) {
    Group& group = groupOf(groups, heat.plan);
    const int64_t features = heat.plan.shape.features;
    for (const Entrant& e : heat.entrants) {
      if (e.who != Who::Ours) continue;
      group.speed[e.norm][features] = speedOf(e, heat.plan);
      if (const Entrant* copy = heat.fasterCopy(e.traffic)) {
        group.share[e.norm][features] = median(copy->samples) / median(e.samples);
        Line& line = group.speed["copy, " + std::to_string(e.traffic.total()) + " transfers"];
        line[features] = speedOf(*copy, heat.plan);
      }
      if (const Entrant* peer = bestPeer(heat, e.norm))
        group.peers[e.norm][features] = median(e.samples) / median(peer->samples);
    }
  }
  std::vector<plot::Picture> all;
  for (const Group& group : groups) {
    const auto several = [](const auto& lines) {
      return std::any_of(lines.begin(), lines.end(), [](const auto& line) { return line.second.size() > 1; });
    };
    if (!several(group.speed)) continue;
    all.push_back(pictureOf(group.key + "-speed", "Speed, " + group.title, "GB/s", group.speed, false));
    if (several(group.share))
      all.push_back(pictureOf(group.key + "-copy", "Share of the faster copy, " + group.title, "copy / normc",
                              group.share, true));
    if (several(group.peers))
      all.push_back(pictureOf(group.key + "-peers", "Time over that of the best peer, " + group.title,
                              "normc / peer", group.peers, true));
  }
  return all;
}

void writeReport(const std::string& folder, const std::string& command, const std::vector<Heat>& heats,
                 const Machine& machine, const std::vector<std::string>& peers) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string text = "# " + command + "\n" + machine.text() + "\n";
  for (const std::string& peer : peers) text += "peer: " + peer + "\n";
  for (const Heat& heat : heats) text += "\n" + table(heat);
  text += "\n" + summary(heats) + notRun(heats);
  nlohmann::json json = toJson(heats, machine, peers);
  for (auto& heat : json["heats"])
    for (auto& entrant : heat["entrants"]) entrant.erase("samples"), entrant.erase("to_norms");
  write(folder + "/report.json", json.dump() + "\n");
  if (auto files = plot::draw(pictures(heats), folder); !files)
    text += "Without pictures: " + llvm::toString(files.takeError()) + "\n";
  write(folder + "/report.txt", text);
}

}  // namespace normc::bench
