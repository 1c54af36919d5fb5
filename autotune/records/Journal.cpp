#include "autotune/records/Journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace normc::tune {
namespace {

/// How often a file is opened until its path refers to it. On some file systems isAt() is never true.
constexpr int kMostTurns = 100;

std::runtime_error failed(const std::string& what, const std::string& path) {
  return std::runtime_error("cannot " + what + " " + path + ": " + std::strerror(errno));
}

/// Opens a file with a descriptor above 2. A standard stream may be closed; if the file took its number,
/// output to that stream would go into the records.
int opened(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (file < 0 || file > STDERR_FILENO) return file;
  const int moved = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), why = errno;
  close(file);
  errno = why;
  return moved;
}

/// Waits for an exclusive lock; does nothing on a file system without locks.
void lock(int file) {
  while (flock(file, LOCK_EX) != 0 && errno == EINTR) {
  }
}

struct Unlock {
  int file;
  ~Unlock() { flock(file, LOCK_UN); }
};

bool isRegular(int file) {
  struct stat status{};
  return fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

/// True if the path still refers to the open file.
bool isAt(int file, const std::string& path) {
  struct stat here{}, there{};
  return fstat(file, &here) == 0 && stat(path.c_str(), &there) == 0 && here.st_ino == there.st_ino &&
         here.st_dev == there.st_dev;
}

}  // namespace

Journal::Journal(std::string path) : path_(std::move(path)) {
  std::error_code none;
  whole_ = std::filesystem::absolute(path_, none).string();
  open();
}

Journal::~Journal() {
  if (file_ >= 0) close(file_);
}

void Journal::open() {
  const int file = opened(whole_, O_RDWR | O_APPEND | O_CREAT);
  if (file < 0) throw failed("write", path_);
  if (!isRegular(file)) {
    close(file);
    throw std::runtime_error("cannot write " + path_ + ": it is not a regular file");
  }
  if (file_ >= 0) close(file_);
  file_ = file;
}

void Journal::appendLine(std::string line) {
  // The file may have been replaced or removed.
  lock(file_);
  for (int i = 0; i < kMostTurns && !isAt(file_, whole_); ++i) {
    open();
    lock(file_);
  }
  const Unlock unlock{file_};
  line += '\n';
  // A line without an end must not absorb this one.
  const off_t end = lseek(file_, 0, SEEK_END);
  char last = '\n';
  if (end > 0 && pread(file_, &last, 1, end - 1) == 1 && last != '\n') line.insert(line.begin(), '\n');
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw failed("write all of a record to", path_);
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

void Journal::sync() {
  // Some file systems do not support sync.
  while (fsync(file_) != 0 && errno != EINVAL && errno != EROFS)
    if (errno != EINTR) throw failed("write", path_);
}

Hold::Hold(const std::string& path) {
  for (int turn = 0;; ++turn) {
    file_ = opened(path, O_RDWR | O_NONBLOCK);  // NFS locks only files that are open for writing
    if (file_ < 0) file_ = opened(path, O_RDONLY | O_NONBLOCK);
    if (file_ < 0) return;
    if (isRegular(file_)) {
      lock(file_);
      if (isAt(file_, path) || turn == kMostTurns) return;
    }
    const bool again = isRegular(file_);
    close(file_);
    file_ = -1;
    if (!again) return;
  }
}

Hold::~Hold() {
  if (file_ >= 0) close(file_);
}

}  // namespace normc::tune
