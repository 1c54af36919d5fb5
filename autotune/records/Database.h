// A file of records: read whole, written by appending.
//
// A line is written by one call that appends, so that several processes may write
// to one file. What is no record of ours is counted and passed over: nothing that
// stands in a file can stop a tuning or lose its other lines.
#pragma once

#include <string>
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
  void add(const Database&);
  const std::string& id(size_t record) const { return ids_[record]; }
  /// All lines, sorted by id: the same bytes for the same set.
  std::string text() const;

 private:
  std::vector<std::string> ids_;
};

/// An I/O error is in the Result; a file that is not there is one, and so is a file of something else: it must
/// neither pass for an empty one nor be appended to. A pipe is read to its end, a device, which may have none, is not.
Result<Database> readDatabase(const std::string& path);
/// The same of a text, `name` in messages.
Result<Database> databaseOf(std::string_view text, const std::string& name);

/// The end of a file. Throws std::runtime_error with the path and what the system says.
class Journal {
 public:
  /// Opens, or makes, the file; fails where it cannot be written, and where it is a device or a pipe: it is read again.
  explicit Journal(std::string path);
  ~Journal();
  Journal(const Journal&) = delete;

  /// On return the line is in the file, for every reader; after sync() it survives a power cut too.
  void append(const Record&);
  void sync();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace normc::tune
