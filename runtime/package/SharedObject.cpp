#include "runtime/package/SharedObject.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "runtime/core/Error.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace normc::runtime {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#endif

normc_status checkElf(const std::vector<char>& elf, std::string_view what) {
  Elf64_Ehdr header;
  if (elf.size() < sizeof header) return fail(NORMC_DATA_LOSS, what, " is too short to be a shared object");
  std::memcpy(&header, elf.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_type != ET_DYN)
    return fail(NORMC_DATA_LOSS, what, " is not a 64-bit shared object");
  if (header.e_machine != kMachine)
    return fail(NORMC_FAILED_PRECONDITION, what, " is code for another processor (ELF machine ",
                header.e_machine, ", this one is ", kMachine, ")");
  // What lies past the end of a file can be mapped, and kills whoever reads it.
  const uint64_t size = elf.size(), tableBytes = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  bool complete = header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phoff <= size &&
                  tableBytes <= size - header.e_phoff;
  for (int i = 0; complete && i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, elf.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    complete = segment.p_offset <= size && segment.p_filesz <= size - segment.p_offset;
  }
  if (!complete) return fail(NORMC_DATA_LOSS, what, " is a shared object with parts missing");
  return NORMC_OK;
}

int memoryFile() {
  // Kernels before 6.3 do not know MFD_EXEC; newer ones may be set up to insist on it.
  const int file = memfd_create("normc-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  return file >= 0 || errno != EINVAL ? file : memfd_create("normc-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

bool writeAll(int file, const std::vector<char>& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += written;
  }
  return true;
}

}  // namespace

normc_status SharedObject::load(const std::vector<char>& elf, std::string_view what,
                                std::shared_ptr<const SharedObject>& object) {
  NORMC_TRY(checkElf(elf, what));
  std::shared_ptr<SharedObject> loaded(new SharedObject());
  loaded->file_ = memoryFile();
  if (loaded->file_ < 0 || !writeAll(loaded->file_, elf) ||
      fcntl(loaded->file_, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
    return fail(NORMC_RESOURCE_EXHAUSTED, "cannot make a memory file for ", what, ": ", std::strerror(errno));
  const std::string path = "/proc/self/fd/" + std::to_string(loaded->file_);
  loaded->handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded->handle_) return fail(NORMC_FAILED_PRECONDITION, "cannot load ", what, ": ", dlerror());
  object = std::move(loaded);
  return NORMC_OK;
}

SharedObject::~SharedObject() {
  if (handle_) dlclose(handle_);
  if (file_ >= 0) close(file_);
}

void* SharedObject::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace normc::runtime
