// Results as JSON lines: one object a line. tune::Journal adds a line as soon as it is known, so a run that
// is cut short has lost nothing.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace normc::gpu {

using Json = nlohmann::json;

/// Returns the objects of a file; none where there is no file. A line that was cut off is left out.
std::vector<Json> readRecords(const std::string& file);

/// The pieces of work of earlier runs, by name: a record says that one begins, and another has its result.
class PastRuns {
 public:
  void begin(const std::string& piece) { ++open_[piece]; }
  /// `stands`: false if the piece is to be done again.
  void end(const std::string& piece, bool stands = true);

  bool ended(const std::string& piece) const { return ended_.contains(piece); }
  /// True if the piece began more often than it ended: it took its process, or the device, with it.
  bool broke(const std::string& piece) const;

 private:
  std::map<std::string, int> open_;
  std::set<std::string> ended_;
};

}  // namespace normc::gpu
