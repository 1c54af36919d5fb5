// The entries of a module and their parameters, as the fake driver reads them.
//
// PTX is read far enough to refuse what the real driver would refuse: an entry
// that is not there, a launch whose block, cluster or parameters differ from what
// the entry declares. A cubin is not checked: it has the entries whose names
// occur in it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace normc::cuda::fake {

struct Parameter {
  size_t offset, bytes;
};

struct Entry {
  std::string name;
  bool declared = false;  ///< in PTX: all below is known
  std::vector<Parameter> parameters;
  size_t parameterBytes = 0;
  int maxThreads = 0;  ///< .maxntid, 0 without
  int threads = 0;     ///< .reqntid, 0 without
  int cluster = 0;     ///< .reqnctapercluster, 0 without
};

/// True if the image is PTX text, false if it is a cubin.
bool isPtx(std::string_view image);
/// 90 of ".target sm_90"; 0 without one.
int targetOf(std::string_view ptx);
/// 80 of ".version 8.0".
int versionOf(std::string_view ptx);
std::vector<Entry> entriesOf(std::string_view ptx);
/// True if the bytes of a cubin contain `name` as a word.
bool names(std::string_view cubin, std::string_view name);

}  // namespace normc::cuda::fake
