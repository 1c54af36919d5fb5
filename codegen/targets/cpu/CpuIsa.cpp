#include "codegen/targets/cpu/CpuIsa.h"

#include "runtime/abi/Isa.h"

namespace normc::codegen::cpu {

const std::vector<Isa>& instructionSets() {
  static const std::vector<Isa> sets = [] {
    std::vector<Isa> list;
    for (const normc::Isa& set : kIsas)
      list.push_back({set.name, std::string(set.machine) + "-unknown-linux-gnu", set.llvmCpu,
                      set.llvmFeatures, set.vectorBytes, set.registers, set.masks16, set.roundsBF16});
    return list;
  }();
  return sets;
}

/// Returns the newest set of this processor; the narrowest of its architecture if it has none.
static llvm::StringRef host() {
  if (const normc::Isa* set = cpuIsa()) return set->name;
#if defined(__aarch64__)
  return "aarch64";
#else
  return kIsas[0].name;
#endif
}

std::string spelling(const Isa& isa) {
  return isa.core ? isa.name.str() + ":" + isa.core->name.str() : isa.name.str();
}

/// Returns the core that is named behind the colon of a target; null: none.
static llvm::Expected<const Core*> coreNamed(llvm::StringRef name, llvm::StringRef target) {
  if (name == "host") return hostCore();
  if (name == "any") return nullptr;
  if (const Core* core = findCore(name)) return core;
  std::string known = "host, any";
  for (const Core& core : cores()) known += ", " + core.name.str();
  return llvm::createStringError("unknown core '" + name.str() + "' in target '" + target.str() +
                                 "'; known: " + known);
}

llvm::Expected<Isa> findIsa(llvm::StringRef text) {
  auto [set, suffix] = text.split(':');
  auto core = coreNamed(text.contains(':') ? suffix : set == "host" ? set : "any", text);
  if (!core) return core.takeError();
  if (*core && set == "aarch64")
    return llvm::createStringError("target '" + text.str() + "': no core of aarch64 is known; leave it out");
  if (set == "host") set = host();
  std::string known;
  for (Isa isa : instructionSets()) {
    isa.core = *core;
    if (isa.name == set) return isa;
    known += (known.empty() ? "" : ", ") + isa.name.str();
  }
  return llvm::createStringError("unknown target '" + set.str() + "'; known: host, " + known);
}

}  // namespace normc::codegen::cpu
