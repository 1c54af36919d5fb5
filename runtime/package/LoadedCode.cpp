#include "runtime/package/LoadedCode.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>

namespace normc::runtime {
namespace {

/// The segments of the object that is loaded at `base`; null if there is none.
struct Segments {
  ElfW(Addr) base;
  const ElfW(Phdr) * first = nullptr;
  size_t count = 0;

  explicit Segments(ElfW(Addr) base) : base(base) {
    dl_iterate_phdr(
        [](dl_phdr_info* object, size_t, void* self) {
          auto& segments = *static_cast<Segments*>(self);
          if (object->dlpi_addr != segments.base) return 0;
          segments.first = object->dlpi_phdr;
          segments.count = object->dlpi_phnum;
          return 1;
        },
        this);
  }
};

}  // namespace

bool isLoadedFrom(void* handle, const std::vector<char>& elf) {
  link_map* loaded;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &loaded) != 0) return false;
  const Segments segments(loaded->l_addr);
  ElfW(Ehdr) header;
  std::memcpy(&header, elf.data(), sizeof header);
  // Segments are compared first: if they are equal, each of them is mapped in full length.
  if (!segments.first || segments.count != header.e_phnum ||
      std::memcmp(segments.first, elf.data() + header.e_phoff, segments.count * sizeof(ElfW(Phdr))) != 0)
    return false;
  for (size_t i = 0; i < segments.count; ++i) {
    const ElfW(Phdr) & segment = segments.first[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & (PF_R | PF_W)) != PF_R) continue;
    const auto* const memory = reinterpret_cast<const char*>(loaded->l_addr + segment.p_vaddr);
    if (std::memcmp(memory, elf.data() + segment.p_offset, segment.p_filesz) != 0) return false;
  }
  return true;
}

}  // namespace normc::runtime
