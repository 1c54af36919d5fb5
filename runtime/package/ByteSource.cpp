#include "runtime/package/ByteSource.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>

#include "runtime/core/Error.h"

namespace normc::runtime {
namespace {

/// Returns the status of a failed call about a file, whose reason is in errno.
normc_status statusOr(normc_status otherwise) {
  return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? NORMC_RESOURCE_EXHAUSTED : otherwise;
}

}  // namespace

normc_status ByteSource::open(const char* path, std::unique_ptr<ByteSource>& source) {
  source.reset(new ByteSource());  // before the file: it closes it, whatever fails
  source->path_ = path;
  // Non-blocking, so that opening a pipe cannot hang.
  const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return fail(errno == ENOENT ? NORMC_NOT_FOUND : statusOr(NORMC_FAILED_PRECONDITION),
                "cannot open the package ", path, ": ", std::strerror(errno));
  source->file_ = file;
  struct stat status;
  if (fstat(file, &status) != 0)
    return fail(statusOr(NORMC_FAILED_PRECONDITION), "cannot read the package ", path, ": ",
                std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return fail(NORMC_DATA_LOSS, path, " is not a regular file");
  source->bytes_ = status.st_size;
  return NORMC_OK;
}

std::unique_ptr<ByteSource> ByteSource::copy(const void* data, size_t bytes) {
  std::unique_ptr<ByteSource> source(new ByteSource());
  const char* begin = static_cast<const char*>(data);
  source->memory_.assign(begin, begin + bytes);
  source->bytes_ = bytes;
  return source;
}

ByteSource::~ByteSource() {
  if (file_ >= 0) close(file_);
}

normc_status ByteSource::read(uint64_t offset, uint64_t count, std::vector<char>& to) const {
  assert(offset <= bytes_ && count <= bytes_ - offset);
  if (file_ < 0) {
    to.insert(to.end(), memory_.begin() + offset, memory_.begin() + offset + count);
    return NORMC_OK;
  }
  size_t filled = to.size();
  to.resize(filled + count);
  while (filled < to.size()) {
    const ssize_t got = pread(file_, to.data() + filled, to.size() - filled, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(statusOr(NORMC_DATA_LOSS), "cannot read the package ", path_, ": ", std::strerror(errno));
    if (got == 0) return fail(NORMC_DATA_LOSS, path_, " became shorter while it was open");
    filled += got;
    offset += got;
  }
  return NORMC_OK;
}

}  // namespace normc::runtime
