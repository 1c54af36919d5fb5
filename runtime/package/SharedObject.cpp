#include "runtime/package/SharedObject.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/core/Error.h"
#include "runtime/package/LoadedCode.h"

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
  // A segment beyond the end of the file could be mapped, and a read there would raise SIGBUS.
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

bool writeAll(int file, const std::vector<char>& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += written;
  }
  return true;
}

/// A file in memory that is sealed after it is written, so that no process can change it.
class MemoryFile {
 public:
  MemoryFile() = default;
  MemoryFile(MemoryFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  ~MemoryFile() {
    if (number_ >= 0) close(number_);
  }

  bool fill(const std::vector<char>& bytes) {
    // Linux before 6.3 does not know MFD_EXEC; newer kernels may be configured to require it.
    number_ = memfd_create("normc-kernels", kFlags | MFD_EXEC);
    if (number_ < 0 && errno == EINVAL) number_ = memfd_create("normc-kernels", kFlags);
    return number_ >= 0 && writeAll(number_, bytes) &&
           fcntl(number_, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0;
  }

  /// False if the system refuses to map the file as code, whatever the memory.
  bool mayBeExecuted() const {
    void* const page = mmap(nullptr, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, number_, 0);
    if (page == MAP_FAILED) return errno != EACCES && errno != EPERM;
    munmap(page, 1);
    return true;
  }

  /// Returns a path that no other load of this process ever has, although descriptor numbers are reused: it
  /// encodes the unique inode number in binary by parts without effect on the path, "/" and "./".
  std::string path() const {
    struct stat info = {};
    fstat(number_, &info);
    std::string digits;
    for (uint64_t rest = info.st_ino; rest > 0; rest /= 2) digits += rest % 2 ? "./" : "/";
    return "/proc/self/fd/" + digits + std::to_string(number_);
  }

 private:
  static constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;

  int number_ = -1;
};

/// Lacks of memory and of descriptors, after which a later load may succeed.
constexpr int kLacks[] = {ENOMEM, EMFILE, ENFILE, ENOSPC};

/// Returns the error of a file that the loader did not load. The loader's message ends with the reason, from
/// strerror if a system call failed. If memory ran out, the message may be cut before it, and copying the
/// message may fail too: what remains is what the loader could not allocate, create or extend. The message of
/// a mapping that failed has no reason: it is memory where the file may be mapped.
normc_status notLoaded(std::string_view what, const MemoryFile& file) {
  const char* const said = dlerror();
  const std::string words = said ? said : "the dynamic loader gives no reason";
  bool exhausted = !said || words.ends_with("cannot open shared object file");
  for (const char* mapping : {"failed to map segment from shared object", "cannot map zero-fill pages"})
    exhausted |= words.ends_with(mapping) && file.mayBeExecuted();
  for (const char* part : {"cannot allocate", "cannot create", "cannot extend", "out of memory"})
    exhausted |= words.find(part) != words.npos;
  for (const int lack : kLacks) exhausted |= words.ends_with(std::strerror(lack));
  return fail(exhausted ? NORMC_RESOURCE_EXHAUSTED : NORMC_FAILED_PRECONDITION, "cannot load ", what, ": ",
              words);
}

/// If the loader returns another object, another file may succeed.
constexpr int kAttempts = 3;

}  // namespace

normc_status SharedObject::load(const std::vector<char>& elf, std::string_view what,
                                std::shared_ptr<const SharedObject>& object) {
  NORMC_TRY(checkElf(elf, what));
  std::vector<MemoryFile> files;  // all open until one is loaded, so that their descriptor numbers differ
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    MemoryFile& file = files.emplace_back();
    if (!file.fill(elf))
      return fail(std::ranges::count(kLacks, errno) ? NORMC_RESOURCE_EXHAUSTED : NORMC_FAILED_PRECONDITION,
                  "cannot make a memory file for ", what, ": ", std::strerror(errno));
    const std::shared_ptr<SharedObject> loaded(
        new SharedObject(dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL)));
    if (!loaded->handle_) return notLoaded(what, file);
    if (!isLoadedFrom(loaded->handle_, elf)) continue;
    object = loaded;
    return NORMC_OK;
  }
  return fail(NORMC_FAILED_PRECONDITION, "cannot load ", what,
              ": the dynamic loader answered with other code ", kAttempts,
              " times; see what replaces dlopen, or closes files of others, in this process");
}

SharedObject::~SharedObject() {
  if (handle_) dlclose(handle_);
}

void* SharedObject::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace normc::runtime
