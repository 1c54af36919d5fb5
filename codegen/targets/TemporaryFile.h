// A file for another program, gone when this is.
#pragma once

#include <string>

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"

namespace normc::codegen {

class TemporaryFile {
 public:
  /// Unavailable where the folder for temporary files is full, or is none.
  static llvm::Expected<TemporaryFile> create(llvm::StringRef suffix, llvm::StringRef content = "");
  TemporaryFile(TemporaryFile&& other) : path_(std::move(other.path_)) { other.path_.clear(); }
  ~TemporaryFile();

  llvm::StringRef path() const { return path_; }
  /// What it holds now; empty where it cannot be read.
  std::string read() const;

 private:
  TemporaryFile() = default;
  llvm::SmallString<64> path_;
};

}  // namespace normc::codegen
