// Checks that the object that the dynamic loader returned is the requested code.
//
// The loader identifies objects by name and by file. For a known name it returns the earlier object without
// reading the file, and that object may still be loaded after all its users have closed it.
#pragma once

#include <vector>

namespace normc::runtime {

/// True if the object behind `handle`, from dlopen, is mapped as `elf`, a complete shared object, specifies:
/// the same segments, and the same bytes in all read-only segments.
bool isLoadedFrom(void* handle, const std::vector<char>& elf);

}  // namespace normc::runtime
