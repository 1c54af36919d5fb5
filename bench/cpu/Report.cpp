#include "bench/cpu/Report.h"

#include <filesystem>

#include "bench/cpu/Pictures.h"
#include "bench/cpu/ShapeTable.h"
#include "bench/kit/Text.h"

namespace normc::bench {

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
  writeText(folder + "/report.json", json.dump() + "\n");
  try {
    writePictures(pictures(json), folder);
  } catch (const std::runtime_error& error) {
    text += std::string("Without pictures: ") + error.what() + "\n";
  }
  writeText(folder + "/report.txt", text);
}

}  // namespace normc::bench
