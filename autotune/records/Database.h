// A file of records, read whole. What is no record of ours is counted and passed over:
// nothing that stands in a file can stop a tuning or lose its other lines.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/records/Record.h"

namespace normc::tune {

/// What a file held.
struct Counts {
  int64_t records = 0;     ///< kept
  int64_t duplicates = 0;  ///< the same measurement again, as after merging by cat
  int64_t damaged = 0;     ///< no record, or one whose hash does not fit
  int64_t newer = 0;       ///< of a schema that this program does not know
  bool torn = false;       ///< the last line has no end: its writer was stopped

  Counts& operator+=(const Counts&);
  /// `12 records, 1 duplicate, 1 damaged line`
  std::string text() const;
};

struct Database {
  std::vector<Record> records;     ///< by id
  std::vector<std::string> lines;  ///< of each, as it stood there
  Counts counts;

  /// Adds the lines of a text, e.g. of another file. The result does not depend on the order of additions.
  void add(std::string_view text);
  void add(Database);
  const std::string& id(size_t record) const { return ids_[record]; }
  /// All lines, sorted by id, and those of a newer schema, which are kept for who can read them: the same
  /// bytes for the same set.
  std::string text() const;
  /// Lines of another one that this one has not.
  std::vector<std::string> missing(const Database& other) const;

 private:
  struct Entry;
  void moveTo(std::vector<Entry>&);
  void join(std::vector<Entry>);

  std::vector<std::string> ids_;
  std::set<std::string> newer_;
};

/// An I/O error is in the Result; a file that is not there is one, and so is a file of something else: it
/// must neither pass for an empty one nor be appended to. A pipe is read to its end, a device, which may have
/// none, is not.
Result<Database> readDatabase(const std::string& path);
/// The same of a text, `name` in messages.
Result<Database> databaseOf(std::string_view text, const std::string& name);

}  // namespace normc::tune
