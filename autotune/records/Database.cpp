#include "autotune/records/Database.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <tuple>

namespace normc::tune {
namespace {

std::runtime_error failed(const std::string& what, const std::string& path) {
  return std::runtime_error("cannot " + what + " " + path + ": " + std::strerror(errno));
}

std::string notRegular(const std::string& what, const std::string& path) {
  return "cannot " + what + " " + path + ": it is not a regular file";
}

std::string counted(int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// What is left of a first line whose writer was stopped.
bool beginsAsRecord(std::string_view text) {
  for (const std::string_view begin : {"{\"conclusion\":{", "{\"device\":{"})  // the first of the keys, sorted
    if (text.starts_with(begin) || begin.starts_with(text)) return true;
  return false;
}

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  records += other.records, duplicates += other.duplicates, damaged += other.damaged, newer += other.newer;
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

void Database::add(std::string_view text) {
  struct Entry {
    std::string id, line;
    Record record;
  };
  std::vector<Entry> entries;
  for (size_t i = 0; i < records.size(); ++i)
    entries.push_back({std::move(ids_[i]), std::move(lines[i]), std::move(records[i])});
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    Line read = readLine(line);
    if (read.record) {
      entries.push_back({std::move(read.id), std::string(line), std::move(*read.record)});
    } else if (end == text.npos) {
      counts.torn = true;
    } else {
      ++(read.flaw == Flaw::NewerSchema ? counts.newer : counts.damaged);
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.id, a.line) < std::tie(b.id, b.line); });
  records.clear(), lines.clear(), ids_.clear();
  for (Entry& entry : entries) {
    if (!ids_.empty() && ids_.back() == entry.id) {
      ++counts.duplicates;
      continue;
    }
    ids_.push_back(std::move(entry.id)), lines.push_back(std::move(entry.line)),
        records.push_back(std::move(entry.record));
  }
  counts.records = int64_t(records.size());
}

void Database::add(const Database& other) {
  add(other.text());
  counts.duplicates += other.counts.duplicates, counts.damaged += other.counts.damaged;
  counts.newer += other.counts.newer, counts.torn |= other.counts.torn;
}

std::string Database::text() const {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Result<Database> readDatabase(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::file_type type = fs::status(path, none).type();
  if (type == fs::file_type::character || type == fs::file_type::block)
    return Diagnostic{.message = notRegular("read", path)};
  errno = type == fs::file_type::directory ? EISDIR : 0;
  std::ifstream file;
  if (!errno) file.open(path, std::ios::binary);
  if (errno || !file) return Diagnostic{.message = failed("read", path).what()};
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return Diagnostic{.message = failed("read", path).what()};
  return databaseOf(text, path);
}

Result<Database> databaseOf(std::string_view text, const std::string& name) {
  Database database;
  database.add(text);
  const Counts& counts = database.counts;
  const bool foreign = counts.damaged || (counts.torn && !beginsAsRecord(text));
  if (foreign && !counts.records && !counts.newer)
    return Diagnostic{.message = name + " holds no records: " + counted(counts.damaged + counts.torn, "line") +
                                 ", none of them a measurement",
                      .hint = "records are what `normc tune --records FILE.jsonl` writes"};
  return database;
}

Journal::Journal(std::string path) : path_(std::move(path)) {
  file_ = open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) throw failed("write", path_);
  struct stat status{};
  if (fstat(file_, &status) == 0 && S_ISREG(status.st_mode)) return;
  close(file_);
  throw std::runtime_error(notRegular("write", path_));
}

Journal::~Journal() {
  if (file_ >= 0) close(file_);
}

void Journal::append(const Record& record) {
  std::string line = lineOf(record) + "\n";
  // A line that was torn must not swallow this one.
  const off_t end = lseek(file_, 0, SEEK_END);
  char last = '\n';
  if (end > 0 && pread(file_, &last, 1, end - 1) == 1 && last != '\n') line.insert(line.begin(), '\n');
  ssize_t written;
  do written = write(file_, line.data(), line.size());
  while (written < 0 && errno == EINTR);
  if (written == ssize_t(line.size())) return;
  if (written >= 0) errno = ENOSPC;
  throw failed("write all of a record to", path_);
}

void Journal::sync() {
  if (fsync(file_) != 0 && errno != EINVAL && errno != EROFS)
    throw failed("write", path_);  // some file systems have nothing to sync
}

}  // namespace normc::tune
