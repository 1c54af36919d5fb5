// Machine code from a package, loaded without ever being a file that somebody
// could change: the verified bytes go to a sealed memory file, which is what
// dlopen maps. The file is closed again at once: a host that closes descriptors of
// others, before an exec say, finds none of ours, and we close none of its.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/normc.h"

namespace normc::runtime {

class SharedObject {
 public:
  /// `what` names the blob in errors. Symbols stay local to the object.
  static normc_status load(const std::vector<char>& elf, std::string_view what,
                           std::shared_ptr<const SharedObject>& object);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;

  /// Null when there is no such symbol.
  void* symbol(const char* name) const;

 private:
  explicit SharedObject(void* handle) : handle_(handle) {}

  void* const handle_;
};

}  // namespace normc::runtime
