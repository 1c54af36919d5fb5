#include "codegen/targets/cpu/Cores.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/TargetParser/Host.h"

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
  Core core{
      name, {}, object.getString("measured")->str(), lines, object.getString("sibling").value_or("").str()};
  for (const llvm::json::Value& processor : *object.getArray("processors"))
    core.processors.push_back(processor.getAsString()->str());
  return core;
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

const Core* coreOfProcessor(llvm::StringRef name, const llvm::StringMap<bool>& features) {
  const llvm::StringRef processor =
      name == "rocketlake" && features.lookup("amx-tile") ? "graniterapids" : name;
  const auto found = llvm::find_if(
      cores(), [&](const Core& core) { return llvm::is_contained(core.processors, processor); });
  return found == cores().end() ? nullptr : &*found;
}

const Core* hostCore() {
  // A virtual machine traps each CPUID instruction, which takes tens of microseconds.
  static const Core* const core =
      coreOfProcessor(llvm::sys::getHostCPUName(), llvm::sys::getHostCPUFeatures());
  return core;
}

}  // namespace normc::codegen::cpu
