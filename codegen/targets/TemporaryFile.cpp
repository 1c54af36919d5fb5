#include "codegen/targets/TemporaryFile.h"

#include "codegen/targets/Unavailable.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace normc::codegen {

/// Returns the error if neither a file nor a folder can be created.
static llvm::Error cannotCreate(const char* what, std::error_code error) {
  llvm::SmallString<64> folder;
  llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/true, folder);
  return llvm::make_error<Unavailable>("cannot create a temporary " + std::string(what) + " in " +
                                       folder.str().str() + ": " + error.message());
}

llvm::Expected<std::string> readMade(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (buffer) return (*buffer)->getBuffer().str();
  return llvm::make_error<Unavailable>("cannot read " + path.str() + ": " + buffer.getError().message());
}

llvm::Expected<TemporaryFile> TemporaryFile::create(llvm::StringRef suffix, llvm::StringRef content) {
  TemporaryFile file;
  int fd;
  if (auto error = llvm::sys::fs::createTemporaryFile("normc", suffix, fd, file.path_))
    return cannotCreate("file", error);
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

llvm::Expected<std::string> TemporaryFile::read() const { return readMade(path_); }

std::string TemporaryFile::log() const {
  auto text = read();
  if (text) return *text;
  llvm::consumeError(text.takeError());
  return "";
}

llvm::Expected<TemporaryFolder> TemporaryFolder::create() {
  TemporaryFolder folder;
  if (auto error = llvm::sys::fs::createUniqueDirectory("normc", folder.path_))
    return cannotCreate("folder", error);
  return folder;
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) llvm::sys::fs::remove_directories(path_);
}

std::string TemporaryFolder::file(llvm::StringRef name) const {
  llvm::SmallString<64> path(path_);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

}  // namespace normc::codegen
