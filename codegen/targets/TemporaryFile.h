// A file for another program, removed by the destructor.
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

}  // namespace normc::codegen
