#include "tools/normc/TemporaryFolder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "tools/normc/Failure.h"

namespace normc::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kPrefix = "normc-tune-";

std::string systemsOwn() {
  std::error_code error;
  const fs::path path = fs::temp_directory_path(error);
  if (error) {
    const char* const named = std::getenv("TMPDIR");
    throw refused("there is no folder for temporary files" + (named ? ", TMPDIR is " + inQuotes(named) : "") +
                      ": " + error.message(),
                  "let TMPDIR name a folder that can be written");
  }
  return path.string();
}

int openFolder(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/// Folders of ours that no process holds. The lock is kept until a folder is gone, so that a process
/// that waits for it sees that.
void removeAbandoned(const std::string& parent) {
  std::error_code none;
  std::vector<std::string> found;
  for (auto entry = fs::directory_iterator(parent, none); !none && entry != fs::directory_iterator();
       entry.increment(none))
    if (entry->path().filename().string().starts_with(kPrefix)) found.push_back(entry->path().string());
  for (const std::string& path : found) {
    const int folder = openFolder(path);
    if (folder < 0) continue;  // of another user, or no folder
    struct stat facts;
    if (fstat(folder, &facts) == 0 && facts.st_uid == geteuid() && flock(folder, LOCK_EX | LOCK_NB) == 0)
      fs::remove_all(path, none);
    close(folder);
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() : TemporaryFolder(systemsOwn()) {}

TemporaryFolder::TemporaryFolder(const std::string& parent) {
  removeAbandoned(parent);
  for (;;) {
    std::string form = parent + "/" + kPrefix + "XXXXXX";
    if (!mkdtemp(form.data()))
      throw refused("cannot make a folder for candidates in " + parent + ": " + std::strerror(errno));
    const int folder = openFolder(form);
    if (folder < 0 && errno != ENOENT) {
      const int why = errno;
      std::error_code none;
      fs::remove(form, none);
      throw refused("cannot open the folder for candidates " + form + ": " + std::strerror(why));
    }
    if (folder >= 0) flock(folder, LOCK_EX);
    struct stat facts;
    const bool gone = folder < 0 || fstat(folder, &facts) != 0 || facts.st_nlink == 0;
    if (!gone) {
      path_ = form;
      lock_ = folder;
      return;
    }
    if (folder >= 0) close(folder);  // another process removed it between the two calls above
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code none;
  fs::remove_all(path_, none);
  close(lock_);
}

}  // namespace normc::cli
