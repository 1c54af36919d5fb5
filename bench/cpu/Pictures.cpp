#include "bench/cpu/Pictures.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>

#include "bench/kit/Text.h"

namespace normc::bench {
namespace {

using Json = nlohmann::json;

/// Features of a whole vector: others are points, since a line would fall and rise beside its neighbours.
constexpr int64_t kWhole = 16;

/// Values over the number of features.
using Line = std::map<int64_t, double>;

struct Chart {
  std::string name, title, unit;
  bool ratio = false;  ///< 1 is marked
  std::map<std::string, Line> lines = {};
};

/// Returns the entrants of a kind, of any kind if it is empty.
std::vector<const Json*> entrantsOf(const Json& heat, const std::string& runner,
                                    const std::string& norm = {}) {
  std::vector<const Json*> found;
  for (const Json& e : heat.at("entrants"))
    if (e.at("who") == runner && (norm.empty() || e.at("norm") == norm)) found.push_back(&e);
  return found;
}

/// Returns the fastest entrant; null if there is none.
const Json* fastest(const std::vector<const Json*>& entrants) {
  const auto at =
      std::ranges::min_element(entrants, {}, [](const Json* e) { return e->at("seconds").get<double>(); });
  return at == entrants.end() ? nullptr : *at;
}

const Json* fasterCopy(const Json& heat, const Json& ours) {
  std::vector<const Json*> copies = entrantsOf(heat, "copy");
  for (const Json* e : entrantsOf(heat, "streaming copy")) copies.push_back(e);
  std::erase_if(copies, [&](const Json* e) {
    return e->at("reads") != ours.at("reads") || e->at("writes") != ours.at("writes");
  });
  return fastest(copies);
}

const Json* bestPeer(const Json& heat, const std::string& norm) {
  std::vector<const Json*> peers = entrantsOf(heat, "oneDNN", norm);
  for (const Json* e : entrantsOf(heat, "PyTorch", norm)) peers.push_back(e);
  return fastest(peers);
}

std::string conditionsOf(const Json& heat) {
  const int64_t threads = heat.at("threads");
  return heat.at("entry").get<std::string>() + " " + heat.at("dtype").get<std::string>() + ", " +
         heat.at("place").get<std::string>() + ", " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads");
}

std::string keyOf(const Json& heat) {
  std::string key = heat.at("entry").get<std::string>() + "-" + heat.at("dtype").get<std::string>() + "-" +
                    heat.at("place").get<std::string>() + "-" +
                    std::to_string(heat.at("threads").get<int64_t>());
  std::ranges::replace(key, ' ', '-');
  return key;
}

/// Returns where and when it was measured, and beside what.
std::string sourceOf(const Json& report) {
  const Json& machine = report.at("machine");
  std::string source =
      machine.at("processor").get<std::string>() + ", " + machine.at("isa").get<std::string>();
  if (report.contains("day")) source += ", " + report.at("day").get<std::string>();
  std::string peers;
  for (const Json& peer : report.at("peers"))
    peers += (peers.empty() ? "; peers: " : ", ") + peer.get<std::string>();
  return source + peers;
}

plot::Picture pictureOf(const Chart& chart, const std::string& source) {
  std::string data, plots;
  int index = 0;
  for (const auto& [norm, line] : chart.lines) {
    std::string whole, odd;
    for (const auto& [features, value] : line)
      (features % kWhole ? odd : whole) += std::to_string(features) + " " + std::to_string(value) + "\n";
    const std::string number = std::to_string(++index), look = "linetype " + number + " pointtype " + number;
    const std::string title = " title \"" + plot::plain(norm) + "\"";
    const auto add = [&](const std::string& label, const std::string& rows, const std::string& how) {
      if (rows.empty()) return;
      data += plot::block(label, rows);
      plots += (plots.empty() ? "plot $" : ", $") + label + " with " + how;
    };
    add("line" + number, whole, "linespoints " + look + title);
    add("odd" + number, odd, "points " + look + " pointsize 1.6" + (whole.empty() ? title : " notitle"));
  }
  if (chart.ratio) plots += ", 1 with lines dashtype 2 linecolor \"black\" notitle";
  return {chart.name, data,
          "set title \"" + plot::plain(chart.title) + "\\n" + plot::plain(source) +
              "\"\nset xlabel \"features; those that are no multiple of " + std::to_string(kWhole) +
              " stand alone\"\nset ylabel \"" + chart.unit +
              "\"\nset logscale x 2\nset yrange [0:*]\nset grid ytics\nset key outside right top vertical "
              "samplen 1 width -2\n" +
              plots + "\n"};
}

}  // namespace

std::vector<plot::Picture> pictures(const Json& report) {
  std::vector<Chart> charts;  // three for all heats with the same conditions
  for (const Json& heat : report.at("heats")) {
    const std::string key = keyOf(heat), title = conditionsOf(heat);
    auto at = std::ranges::find(charts, key + "-speed", &Chart::name);
    if (at == charts.end()) {
      charts.push_back({key + "-speed", "Speed, " + title + "; higher is better", "GB/s"});
      charts.push_back({key + "-copy", "Share of the faster copy, " + title + "; higher is better",
                        "time of copy / normc", true});
      charts.push_back({key + "-peers", "Time over that of the best peer, " + title + "; lower is better",
                        "normc / peer", true});
      at = charts.end() - 3;
    }
    auto &speed = at[0].lines, &share = at[1].lines, &peers = at[2].lines;
    const int64_t features = heat.at("features");
    for (const Json* e : entrantsOf(heat, "normc")) {
      const std::string norm = e->at("norm");
      const double seconds = e->at("seconds");
      speed[norm][features] = e->at("gigabytes_per_second");
      if (const Json* copy = fasterCopy(heat, *e)) {
        share[norm][features] = copy->at("seconds").get<double>() / seconds;
        const int64_t transfers = e->at("reads").get<int64_t>() + e->at("writes").get<int64_t>();
        speed["copy, " + std::to_string(transfers) + " transfers"][features] =
            copy->at("gigabytes_per_second");
      }
      if (const Json* peer = bestPeer(heat, norm))
        peers[norm][features] = seconds / peer->at("seconds").get<double>();
    }
  }
  std::vector<plot::Picture> all;
  for (const Chart& chart : charts)
    if (std::ranges::any_of(chart.lines, [](const auto& line) { return line.second.size() > 1; }))
      all.push_back(pictureOf(chart, sourceOf(report)));
  return all;
}

std::vector<std::string> drawAgain(const std::string& folder) {
  const std::string file = folder + "/report.json";
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("cannot read " + file + ": " + std::strerror(errno));
  std::vector<plot::Picture> all;
  try {
    all = pictures(Json::parse(stream));
  } catch (const Json::exception& error) {
    throw std::runtime_error(file + " is no report of normc-bench: " + error.what());
  }
  return writePictures(all, folder);
}

std::vector<std::string> writePictures(const std::vector<plot::Picture>& all, const std::string& folder) {
  auto drawn = plot::draw(all);
  if (!drawn) throw std::runtime_error(llvm::toString(drawn.takeError()));
  std::vector<std::string> files;
  for (const plot::Drawn& each : *drawn) {
    files.push_back(folder + "/" + each.file);
    writeText(files.back(), each.bytes);
  }
  return files;
}

}  // namespace normc::bench
