#include "autotune/records/Database.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

#include "dsl/Nearest.h"

namespace normc::tune {
namespace {

Diagnostic cannotRead(const std::string& path) {
  return {.message = "cannot read " + path + ": " + std::strerror(errno)};
}

/// True if the text can be the beginning of a record: of a first line whose writer was interrupted.
bool beginsAsRecord(std::string_view text) {
  for (const std::string_view begin : {"{\"conclusion\":{", "{\"device\":{"})  // the first of the sorted keys
    if (text.starts_with(begin) || begin.starts_with(text)) return true;
  return false;
}

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  records += other.records;
  duplicates += other.duplicates;
  damaged += other.damaged;
  newer += other.newer;
  torn |= other.torn;
  return *this;
}

std::string Counts::text() const {
  std::string text = counted(records, "record");
  if (duplicates) text += ", " + counted(duplicates, "duplicate");
  if (damaged) text += ", " + counted(damaged, "damaged line");
  if (newer) text += ", " + counted(newer, "line") + " of a newer normc";
  if (torn) text += ", a torn last line";
  return text;
}

struct Database::Entry {
  std::string id, line;
  Record record;
};

void Database::add(std::string_view text) {
  std::vector<Entry> entries;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    Line read = readLine(line);
    if (read.record)
      entries.push_back({std::move(read.id), std::string(line), std::move(*read.record)});
    else if (read.flaw == Flaw::NewerSchema)
      counts.duplicates += !newer_.emplace(line).second;
    else if (end == text.npos)
      counts.torn = true;
    else
      ++counts.damaged;
  }
  join(std::move(entries));
}

void Database::add(Database other) {
  std::vector<Entry> entries;
  other.moveTo(entries);
  for (const std::string& line : other.newer_) counts.duplicates += !newer_.insert(line).second;
  counts.duplicates += other.counts.duplicates;
  counts.damaged += other.counts.damaged;
  counts.torn |= other.counts.torn;
  join(std::move(entries));
}

void Database::moveTo(std::vector<Entry>& entries) {
  for (size_t i = 0; i < records.size(); ++i)
    entries.push_back({std::move(ids_[i]), std::move(lines[i]), std::move(records[i])});
}

void Database::join(std::vector<Entry> entries) {
  moveTo(entries);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.id, a.line) < std::tie(b.id, b.line); });
  records.clear();
  lines.clear();
  ids_.clear();
  for (Entry& entry : entries) {
    if (!ids_.empty() && ids_.back() == entry.id) {
      ++counts.duplicates;
      continue;
    }
    ids_.push_back(std::move(entry.id));
    lines.push_back(std::move(entry.line));
    records.push_back(std::move(entry.record));
  }
  counts.records = int64_t(records.size());
  counts.newer = int64_t(newer_.size());
}

std::vector<std::string> Database::missing(const Database& other) const {
  std::vector<std::string> missing;
  for (size_t i = 0; i < other.lines.size(); ++i)
    if (!std::binary_search(ids_.begin(), ids_.end(), other.ids_[i])) missing.push_back(other.lines[i]);
  for (const std::string& line : other.newer_)
    if (!newer_.contains(line)) missing.push_back(line);
  return missing;
}

std::string Database::text() const {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  for (const std::string& line : newer_) text += line + "\n";
  return text;
}

Result<Database> readDatabase(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::file_type type = fs::status(path, none).type();
  if (type == fs::file_type::character || type == fs::file_type::block)
    return Diagnostic{.message = "cannot read " + path + ": it is not a regular file"};
  errno = type == fs::file_type::directory ? EISDIR : 0;
  std::ifstream file;
  if (!errno) file.open(path, std::ios::binary);
  if (errno || !file) return cannotRead(path);
  std::string text;
  try {
    text.assign(std::istreambuf_iterator<char>(file), {});
  } catch (const std::ios_base::failure&) {  // of the buffer, with the reason in errno
    return cannotRead(path);
  }
  return databaseOf(text, path);
}

Result<Database> databaseOf(std::string_view text, const std::string& name) {
  Database database;
  database.add(text);
  const Counts& counts = database.counts;
  const bool foreign = (counts.damaged || counts.torn) && !beginsAsRecord(text);
  if (foreign && !counts.records && !counts.newer)
    return Diagnostic{.message = name +
                                 " holds no records: " + counted(counts.damaged + counts.torn, "line") +
                                 ", none of them a measurement",
                      .hint = "records are what 'normc tune --records FILE.jsonl' writes"};
  return database;
}

}  // namespace normc::tune
