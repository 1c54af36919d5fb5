// Whether what the dynamic loader answers with is the code that was asked for.
//
// It tells objects apart by their names and by the files they came from. Under a name
// that it has seen before it answers with the object from back then, without a look
// at the file, and that may still be there although everybody here has closed it.
#pragma once

#include <vector>

namespace normc::runtime {

/// Whether the object behind `handle`, as dlopen gave it, lies in memory as `elf`, a complete shared object,
/// says: the same segments, and the same bytes in all that are only read.
bool isLoadedFrom(void* handle, const std::vector<char>& elf);

}  // namespace normc::runtime
