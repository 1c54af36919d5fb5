#include "bench/cpu/Report.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "bench/cpu/Pictures.h"
#include "bench/cpu/ShapeTable.h"
#include "bench/kit/Text.h"

namespace normc::bench {

std::string tablesOfAll(const std::vector<Heat>& heats, bool withCliffs) {
  return summary(heats) + shapeTables(heats) + (withCliffs ? cliffs(heats) : "") + notRun(heats);
}

void makeReportFolder(const std::string& folder) {
  std::error_code none;  // a folder that cannot be made has no file that can be written
  std::filesystem::create_directories(folder, none);
  const std::string file = folder + "/report.txt";
  if (!std::ofstream(file, std::ios::app))
    throw std::runtime_error("cannot write " + file + ": " + std::strerror(errno));
}

void writeReport(const std::string& folder, const std::string& command, const std::vector<Heat>& heats,
                 const Machine& machine, const std::vector<std::string>& peers, bool withCliffs) {
  makeReportFolder(folder);
  std::string text = "# " + command + "\n" + machine.text() + "\n";
  for (const std::string& peer : peers) text += "peer: " + peer + "\n";
  for (const Heat& heat : heats) text += "\n" + table(heat);
  text += "\n" + tablesOfAll(heats, withCliffs);
  nlohmann::json json = toJson(heats, machine, peers);
  for (auto& heat : json["heats"])
    for (auto& entrant : heat["entrants"]) {
      entrant.erase("samples");
      entrant.erase("to_norms");
    }
  writeText(folder + "/report.json", json.dump() + "\n");
  try {
    writePictures(pictures(json), folder);
  } catch (const std::runtime_error& error) {
    text += std::string("Without pictures: ") + error.what() + "\n";
  }
  writeText(folder + "/report.txt", text);
}

}  // namespace normc::bench
