// Results as JSON lines: one object a line, written and flushed as soon as it is
// known, so that a run which is cut short has lost nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace normc::gpu {

using Json = nlohmann::json;

/// The objects of a file; none where there is no file. A last line that was cut off is left out.
std::vector<Json> readRecords(const std::string& file);

/// Adds to the end of a file. Throws std::runtime_error where it cannot.
class RecordFile {
 public:
  explicit RecordFile(std::string file);
  void add(const Json&);

 private:
  std::string file_;
};

}  // namespace normc::gpu
