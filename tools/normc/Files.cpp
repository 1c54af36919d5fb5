#include "tools/normc/Files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "codegen/package/Writer.h"
#include "tools/normc/Failure.h"

namespace normc::cli {

namespace fs = std::filesystem;

namespace {

Failure cannot(const char* what, const std::string& path, int error) {
  return refused(std::string("cannot ") + what + " " + path + ": " + std::strerror(error));
}

/// To a device or a pipe, which a rename would replace.
void writeThrough(const std::string& path, std::string_view content) {
  const int file = path == "-" ? dup(STDOUT_FILENO) : open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) throw cannot("write", path, errno);
  const int error = package::writeAll(file, content) ? 0 : errno;
  close(file);
  if (error) throw cannot("write", path, error);
}

/// Returns the path that links lead to, whether there is a file or not.
std::string followed(const std::string& given) {
  constexpr int kMostLinks = 40;
  std::error_code none;
  fs::path path = given;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!fs::is_symlink(path, none)) return path.string();
    path = path.parent_path() / fs::read_symlink(path, none);  // which replaces all of it if it is absolute
  }
  throw cannot("write", given, ELOOP);
}

/// True if both paths lead to one file, there or not; `-` is a file where the standard input is one.
bool isSameFile(std::string a, std::string b) {
  for (std::string* path : {&a, &b}) {
    if (*path == "-") *path = "/dev/stdin";
    if (isStream(*path)) return false;
  }
  std::error_code none;
  if (fs::equivalent(a, b, none)) return true;
  const auto whole = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(followed(path), none), none);
  };
  return whole(a) == whole(b);
}

}  // namespace

bool isStandardOutput(const std::string& path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

bool isStream(const std::string& path) {
  std::error_code none;
  return path == "-" || (fs::exists(path, none) && !fs::is_regular_file(path, none));
}

std::string readFile(const std::string& path, size_t most) {
  const bool isInput = path == "-";
  std::error_code none;
  const fs::file_type type = isInput ? fs::file_type::fifo : fs::status(path, none).type();
  if (type == fs::file_type::directory) throw cannot("read", path, EISDIR);
  if (type == fs::file_type::character || type == fs::file_type::block)
    throw refused("cannot read " + path + ": it is not a regular file");
  errno = 0;
  std::ifstream file;
  if (!isInput) file.open(path, std::ios::binary);
  if (!isInput && !file) throw cannot("read", path, errno ? errno : EIO);
  std::istream& in = isInput ? std::cin : file;
  std::string content;
  constexpr size_t kPiece = 1 << 20;
  do {
    const size_t before = content.size(), wanted = std::min(kPiece, most - before);
    content.resize(before + wanted);
    in.read(content.data() + before, std::streamsize(wanted));
    content.resize(before + size_t(in.gcount()));
  } while (in && content.size() < most);
  if (in.bad()) throw cannot("read", path, EIO);
  return content;
}

void writeFile(const std::string& given, std::string_view content) {
  if (isStream(given)) return writeThrough(given, content);
  if (const int error = package::replaceFile(followed(given), content)) throw cannot("write", given, error);
}

void requireOwnFile(const NamedFile& output, const std::vector<NamedFile>& others, const std::string& hint) {
  if (isStream(output.path)) return;
  for (const NamedFile& other : others)
    if (isSameFile(output.path, other.path))
      throw usage(output.text() + " is the same file as " + other.text() + ", which it would replace",
                  "name another file for " + output.what + (hint.empty() ? "" : ", or " + hint));
}

namespace {

/// Fails if no file can be made in the folder of `path`.
void requireRoom(const std::string& path) {
  std::error_code none;
  const fs::path parent = fs::path(path).parent_path(), folder = parent.empty() ? "." : parent;
  if (fs::exists(folder, none) && !fs::is_directory(folder, none)) throw cannot("write", path, ENOTDIR);
  if (access(folder.c_str(), W_OK | X_OK) != 0) throw cannot("write", path, errno);
}

}  // namespace

void requireWritable(const std::string& path) {
  std::error_code none;
  if (fs::is_directory(path, none)) throw cannot("write", path, EISDIR);
  if (isStream(path)) return;
  const std::string file = followed(path);
  if (fs::exists(file, none) && access(file.c_str(), W_OK) != 0) throw cannot("write", path, errno);
  requireRoom(file);
}

void requireFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw refused("cannot make the folder " + path + ": " + error.message());
  requireRoom(path + "/");
}

}  // namespace normc::cli
