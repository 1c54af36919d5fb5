// Machine code from a package, loaded without ever being a file that somebody
// could change: the verified bytes go to a sealed memory file, which is what
// dlopen maps.
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
  SharedObject() = default;

  // Held open as long as the handle: dlopen tells objects apart by name, and a number that is free again
  // would give the next object the same name.
  int file_ = -1;
  void* handle_ = nullptr;
};

}  // namespace normc::runtime
