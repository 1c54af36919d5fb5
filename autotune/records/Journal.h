// Appends lines to a file of records. Each line is written by one call, so that several processes may share a
// file.
#pragma once

#include <string>

#include "autotune/records/Record.h"

namespace normc::tune {

/// Appends to a file. Throws std::runtime_error with the path and the system's message.
class Journal {
 public:
  /// Opens or creates the file. Throws if it cannot be written, or is a device or a pipe, since records are
  /// read again.
  explicit Journal(std::string path);
  ~Journal();
  Journal(const Journal&) = delete;

  /// Appends a record. After it returns, every reader of the file that now has the path sees the line; after
  /// sync() the line also survives a power failure.
  void append(const Record& record) { appendLine(lineOf(record)); }
  /// Appends a line that was read elsewhere, unchanged.
  void appendLine(std::string line);
  void sync();
  const std::string& path() const { return path_; }

 private:
  void open();

  std::string path_;
  std::string whole_;  ///< the absolute path, so that the process may change its folder
  int file_ = -1;
};

/// During its lifetime no Journal appends to the file, so a replacement of the file loses no line. Journals
/// that waited append to the new file.
class Hold {
 public:
  explicit Hold(const std::string& path);
  ~Hold();
  Hold(const Hold&) = delete;

 private:
  int file_ = -1;  ///< -1 if there is no such file
};

}  // namespace normc::tune
