#include "autotune/gate/Pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace normc::gate {

Pages::Pages(int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE), inner = (bytes + page - 1) / page * page;
  void* all = mmap(nullptr, size_t(inner + 2 * page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<uint8_t*>(all) + page;
  bytes_ = inner;
  if (mprotect(data_, size_t(inner), PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

Pages::~Pages() {
  if (!data_) return;
  const int64_t page = sysconf(_SC_PAGESIZE);
  munmap(data_ - page, size_t(bytes_ + 2 * page));
}

}  // namespace normc::gate
