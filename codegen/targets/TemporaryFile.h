// A file for another program and a folder for its files, removed by their destructors.
#pragma once

#include <string>

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"

namespace normc::codegen {

class TemporaryFile {
 public:
  /// Creates a file. The error is Unavailable if the folder for temporary files is full or missing.
  static llvm::Expected<TemporaryFile> create(llvm::StringRef suffix, llvm::StringRef content = "");
  TemporaryFile(TemporaryFile&& other) : path_(std::move(other.path_)) { other.path_.clear(); }
  ~TemporaryFile();

  llvm::StringRef path() const { return path_; }
  /// Returns the current content. The error is Unavailable.
  llvm::Expected<std::string> read() const;
  /// Returns the current content of a log; empty if it cannot be read.
  std::string log() const;

 private:
  TemporaryFile() = default;
  llvm::SmallString<64> path_;
};

class TemporaryFolder {
 public:
  /// Creates an empty folder. The error is Unavailable.
  static llvm::Expected<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder&& other) : path_(std::move(other.path_)) { other.path_.clear(); }
  ~TemporaryFolder();

  /// Returns the path of a file that another program makes in it.
  std::string file(llvm::StringRef name) const;

 private:
  TemporaryFolder() = default;
  llvm::SmallString<64> path_;
};

/// Returns the content of a file that another program made. The error is Unavailable.
llvm::Expected<std::string> readMade(llvm::StringRef path);

}  // namespace normc::codegen
