// A folder for candidates, gone with its object; and with the next one, where its process was killed.
//
// A process that is killed cannot tidy up. So a folder is locked (flock) as long as its owner lives: the
// system lets go of the lock however the process ends. Making a folder first removes those beside it
// that no process holds. A file system that has no locks leaves them all: none is removed on suspicion.
#pragma once

#include <string>

namespace normc::cli {

class TemporaryFolder {
 public:
  /// Under the system's temporary folder. Throws Failure where none can be made.
  TemporaryFolder();
  /// Under `parent`.
  explicit TemporaryFolder(const std::string& parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;  ///< the folder itself, open and locked
};

}  // namespace normc::cli
