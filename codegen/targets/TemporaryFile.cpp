#include "codegen/targets/TemporaryFile.h"

#include "codegen/targets/Unavailable.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace normc::codegen {

llvm::Expected<TemporaryFile> TemporaryFile::create(llvm::StringRef suffix, llvm::StringRef content) {
  TemporaryFile file;
  int fd;
  if (auto error = llvm::sys::fs::createTemporaryFile("normc", suffix, fd, file.path_)) {
    llvm::SmallString<64> folder;
    llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/true, folder);
    return llvm::make_error<Unavailable>("cannot create a temporary file in " + folder.str().str() + ": " +
                                         error.message());
  }
  llvm::raw_fd_ostream out(fd, /*shouldClose=*/true);
  out << content;
  out.close();
  if (const std::error_code error = out.error()) {
    out.clear_error();  // a stream with a pending error aborts in its destructor
    return llvm::make_error<Unavailable>("cannot write " + file.path_.str().str() + ": " + error.message());
  }
  return file;
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) llvm::sys::fs::remove(path_);
}

llvm::Expected<std::string> TemporaryFile::read() const {
  auto buffer = llvm::MemoryBuffer::getFile(path_);
  if (buffer) return (*buffer)->getBuffer().str();
  return llvm::make_error<Unavailable>("cannot read " + path_.str().str() + ": " +
                                       buffer.getError().message());
}

std::string TemporaryFile::log() const {
  auto text = read();
  if (text) return *text;
  llvm::consumeError(text.takeError());
  return "";
}

}  // namespace normc::codegen
