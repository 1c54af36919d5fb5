#include "codegen/targets/TemporaryFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

namespace normc::codegen {

llvm::Expected<TemporaryFile> TemporaryFile::create(llvm::StringRef suffix, llvm::StringRef content) {
  TemporaryFile file;
  int fd;
  if (auto error = llvm::sys::fs::createTemporaryFile("normc", suffix, fd, file.path_))
    return llvm::createStringError(error, "cannot create a temporary file: " + error.message());
  llvm::raw_fd_ostream out(fd, /*shouldClose=*/true);
  out << content;
  out.close();
  if (out.has_error())
    return llvm::createStringError("cannot write " + file.path_.str().str() + ": " + out.error().message());
  return file;
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) llvm::sys::fs::remove(path_);
}

std::string TemporaryFile::read() const {
  auto buffer = llvm::MemoryBuffer::getFile(path_);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

}  // namespace normc::codegen
