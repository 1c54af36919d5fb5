#include "tests/fuzz/Folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace normc::fuzz {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    // Memory where there is some: a target writes thousands of files in a second.
    std::error_code none;
    const fs::path place = fs::is_directory("/dev/shm", none) ? "/dev/shm" : fs::temp_directory_path();
    std::string form = (place / "normc-fuzz-XXXXXX").string();
    path = mkdtemp(form.data());
  }
  ~Folder() {
    std::error_code none;
    fs::remove_all(path, none);
  }
  std::string path;
};

}  // namespace

const std::string& folder() {
  static const Folder folder;
  return folder.path;
}

std::string writeFile(const std::string& name, std::string_view bytes) {
  const std::string path = folder() + "/" + name;
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace normc::fuzz
