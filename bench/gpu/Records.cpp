#include "bench/gpu/Records.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace normc::gpu {

std::vector<Json> readRecords(const std::string& file) {
  std::vector<Json> records;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    Json record = Json::parse(line, nullptr, false);
    if (record.is_object()) records.push_back(std::move(record));
  }
  return records;
}

/// A line that was cut off must not swallow the next one.
RecordFile::RecordFile(std::string file) : file_(std::move(file)) {
  std::ifstream old(file_, std::ios::binary | std::ios::ate);
  bool cut = false;
  if (old && old.tellg() > 0) {
    old.seekg(-1, std::ios::end);
    cut = old.get() != '\n';
  }
  std::ofstream stream(file_, std::ios::app);
  if (cut) stream << "\n";
  if (!stream) throw std::runtime_error("cannot write " + file_);
}

void RecordFile::add(const Json& record) {
  std::ofstream stream(file_, std::ios::app);
  stream << record.dump() << std::endl;
  if (!stream) throw std::runtime_error("cannot write all of " + file_);
}

}  // namespace normc::gpu
