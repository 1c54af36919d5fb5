// The entries of a module and their parameters, as the fake driver reads them.
//
// PTX is parsed to detect what the real driver would refuse: an entry that is missing, a launch whose block,
// cluster or parameters differ from the entry's declaration. A cubin has the entries whose names occur in it;
// of one that ptxas made the parameters are known.
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
  bool declared = false;  ///< its parameters are known
  std::vector<Parameter> parameters;
  size_t parameterBytes = 0;
  int maxThreads = 0;      ///< .maxntid; 0 if absent
  int threads = 0;         ///< .reqntid; 0 if absent
  int cluster = 0;         ///< .reqnctapercluster; 0 if absent
  size_t sharedBytes = 0;  ///< of the variables in shared memory that it names
};

/// True if the image is PTX text, false if it is a cubin.
bool isPtx(std::string_view image);
/// Returns 90 for ".target sm_90"; 0 if there is none.
int targetOf(std::string_view ptx);
/// Returns 80 for ".version 8.0".
int versionOf(std::string_view ptx);
std::vector<Entry> entriesOf(std::string_view ptx);
/// Returns an entry of a cubin, with what its section `.nv.info.NAME` says of parameters.
Entry entryOf(std::string_view cubin, std::string_view name);
/// True if the text, or the bytes of a cubin, contain `name` as a word.
bool names(std::string_view image, std::string_view name);

}  // namespace normc::cuda::fake
