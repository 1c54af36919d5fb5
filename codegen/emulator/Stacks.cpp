#include "codegen/emulator/Stacks.h"

#include <sys/mman.h>

namespace normc::emulator {

/// Larger memory is not kept: only a large cooperative launch needs more.
static constexpr size_t kMostKept = size_t(256) << 20;

llvm::Expected<std::unique_ptr<Stacks>> Stacks::create(size_t bytes) {
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return llvm::createStringError("no memory for the stacks of the threads that are resident together: " +
                                   std::to_string(bytes >> 20) + " MiB");
  return std::unique_ptr<Stacks>(new Stacks(static_cast<std::byte*>(memory), bytes));
}

Stacks::~Stacks() { munmap(data_, bytes_); }

llvm::Expected<std::unique_ptr<Stacks>> StackPool::take(size_t bytes) {
  {
    std::lock_guard lock(mutex_);
    if (kept_ && kept_->bytes() >= bytes) return std::move(kept_);
  }
  return Stacks::create(bytes);
}

void StackPool::giveBack(std::unique_ptr<Stacks> stacks) {
  std::lock_guard lock(mutex_);
  if (stacks->bytes() <= kMostKept && (!kept_ || kept_->bytes() < stacks->bytes())) kept_ = std::move(stacks);
}

}  // namespace normc::emulator
