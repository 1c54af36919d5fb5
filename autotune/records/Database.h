// A file of records, read as a whole. Lines that are not records are counted and skipped: no content of a
// file can stop a tuning or lose other lines.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/records/Record.h"

namespace normc::tune {

/// The numbers of lines of each kind in a file.
struct Counts {
  int64_t records = 0;     ///< records that were kept
  int64_t duplicates = 0;  ///< repeated lines, as after merging files by cat
  int64_t damaged = 0;     ///< lines that are not records, or whose hash does not match
  int64_t newer = 0;       ///< records of a schema that this version cannot read
  bool torn = false;       ///< the last line has no end: its writer was interrupted

  Counts& operator+=(const Counts&);
  /// `12 records, 1 duplicate, 1 damaged line`
  std::string text() const;
};

struct Database {
  std::vector<Record> records;     ///< sorted by id
  std::vector<std::string> lines;  ///< the line of each record, unchanged
  Counts counts;

  /// Adds the lines of a text, e.g. of another file. The result does not depend on the order of additions.
  void add(std::string_view text);
  void add(Database);
  const std::string& id(size_t record) const { return ids_[record]; }
  /// Returns all lines, sorted by id, including those of a newer schema, which a newer version can read. The
  /// same set gives the same bytes.
  std::string text() const;
  /// Returns the lines of `other` that this database does not have.
  std::vector<std::string> missing(const Database& other) const;

 private:
  struct Entry;
  void moveTo(std::vector<Entry>&);
  void join(std::vector<Entry>);

  std::vector<std::string> ids_;
  std::set<std::string> newer_;
};

/// Reads a file. It is an error if the file cannot be read, is missing, or holds something else: such a file
/// must not be taken for an empty one or be appended to. A pipe is read to its end. A device is refused,
/// since it may have no end.
Result<Database> readDatabase(const std::string& path);
/// Reads records from a text. `name` is used in messages.
Result<Database> databaseOf(std::string_view text, const std::string& name);

}  // namespace normc::tune
