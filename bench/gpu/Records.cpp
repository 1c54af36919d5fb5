#include "bench/gpu/Records.h"

#include <fstream>

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

void PastRuns::end(const std::string& piece, bool stands) {
  --open_[piece];
  if (stands) ended_.insert(piece);
}

bool PastRuns::broke(const std::string& piece) const {
  const auto at = open_.find(piece);
  return at != open_.end() && at->second > 0;
}

}  // namespace normc::gpu
