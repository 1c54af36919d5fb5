#include "autotune/measure/SystemText.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace normc::measure {
namespace {

std::system_error cannotRead(const std::string& path) {
  return {errno, std::generic_category(), "cannot read " + path};
}

}  // namespace

std::string systemText(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EIO) throw cannotRead(path);
    return "";
  }
  try {
    return {std::istreambuf_iterator<char>(file), {}};
  } catch (const std::ios_base::failure&) {  // of the buffer, with the reason in errno
    throw cannotRead(path);
  }
}

}  // namespace normc::measure
