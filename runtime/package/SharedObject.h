// Loads machine code of a package without a file that another process could change: the verified bytes are
// written to a sealed memory file, which dlopen maps. The file is closed immediately afterwards. So a host
// that closes all descriptors, e.g. before an exec, does not find one of this library, and this library does
// not close one of the host.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/normc.h"

namespace normc::runtime {

class SharedObject {
 public:
  /// `what`: the name of the blob in errors. Its symbols are local to the object.
  static normc_status load(const std::vector<char>& elf, std::string_view what,
                           std::shared_ptr<const SharedObject>& object);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;

  /// Returns null if there is no such symbol.
  void* symbol(const char* name) const;

 private:
  explicit SharedObject(void* handle) : handle_(handle) {}

  void* const handle_;
};

}  // namespace normc::runtime
