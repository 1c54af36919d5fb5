#include "codegen/targets/cpu/Cores.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "runtime/abi/CpuCore.h"

namespace normc::codegen::cpu {

/// The files of defaults/: name and text.
static constexpr struct {
  llvm::StringLiteral name, text;
} kFiles[] = {
#include "CoreTables.inc"
};

/// Reads the first line of a file. The files are part of the program, and a test reads them all.
static Core coreOf(llvm::StringRef name, llvm::StringRef text) {
  const auto [head, lines] = text.split('\n');
  const llvm::json::Value json = llvm::cantFail(llvm::json::parse(head));
  const llvm::json::Object& object = *json.getAsObject();
  return {name, object.getString("measured")->str(), lines, object.getString("sibling").value_or("").str()};
}

const std::vector<Core>& cores() {
  static const std::vector<Core> all = [] {
    std::vector<Core> list;
    for (const auto& [name, text] : kFiles) list.push_back(coreOf(name, text));
    return list;
  }();
  return all;
}

const Core* findCore(llvm::StringRef name) {
  const auto found = llvm::find_if(cores(), [&](const Core& core) { return core.name == name; });
  return found == cores().end() ? nullptr : &*found;
}

const Core* hostCore() { return findCore(cpuCore()); }

}  // namespace normc::codegen::cpu
