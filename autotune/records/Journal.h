// A file of records is written by appending lines, each by one call, so that several processes may share it.
#pragma once

#include <string>

#include "autotune/records/Record.h"

namespace normc::tune {

/// The end of a file. Throws std::runtime_error with the path and what the system says.
class Journal {
 public:
  /// Opens, or makes, the file; fails where it cannot be written, and where it is a device or a pipe: it is
  /// read again.
  explicit Journal(std::string path);
  ~Journal();
  Journal(const Journal&) = delete;

  /// On return the line is in the file that has the path now, for every reader; after sync() it survives a
  /// power cut too.
  void append(const Record& record) { appendLine(lineOf(record)); }
  /// One that was read elsewhere, as it stood there.
  void appendLine(std::string line);
  void sync();
  const std::string& path() const { return path_; }

 private:
  void open();

  std::string path_;
  std::string whole_;  ///< the path, wherever the process goes
  int file_ = -1;
};

/// While it lives no Journal appends to the file: who reads it to put another one in its place loses no line.
/// Who then appends does so to the new one.
class Hold {
 public:
  explicit Hold(const std::string& path);
  ~Hold();
  Hold(const Hold&) = delete;

 private:
  int file_ = -1;  ///< none where there is no such file
};

}  // namespace normc::tune
