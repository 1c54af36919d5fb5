#include "codegen/targets/cpu/CpuIsa.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Host.h"
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

/// Returns the core of this processor, by the name that LLVM gives it.
static Core hostCore() {
  constexpr llvm::StringRef kCoves[] = {"icelake",      "tigerlake",      "rocketlake",    "alderlake",
                                        "raptorlake",   "sapphirerapids", "emeraldrapids", "graniterapids",
                                        "meteorlake",   "arrowlake",      "lunarlake",     "pantherlake",
                                        "diamondrapids"};
  const llvm::StringRef cpu = llvm::sys::getHostCPUName();
  if (cpu.starts_with("znver")) return Core::Zen;
  return llvm::any_of(kCoves, [&](llvm::StringRef cove) { return cpu.starts_with(cove); }) ? Core::Cove
                                                                                           : Core::Any;
}

llvm::StringRef name(Core core) { return core == Core::Zen ? "zen" : core == Core::Cove ? "cove" : "any"; }

std::string spelling(const Isa& isa) {
  return isa.core == Core::Any ? isa.name.str() : isa.name.str() + ":" + name(isa.core).str();
}

llvm::Expected<Isa> findIsa(llvm::StringRef text) {
  auto [set, suffix] = text.split(':');
  Core core = set == "host" ? hostCore() : Core::Any;
  if (text.contains(':')) {
    const Core cores[] = {Core::Any, Core::Zen, Core::Cove};
    const auto named = llvm::find_if(cores, [&](Core c) { return name(c) == suffix; });
    if (suffix != "host" && named == std::end(cores))
      return llvm::createStringError("unknown core '" + suffix.str() + "' in target '" + text.str() +
                                     "'; known: host, any, zen, cove");
    core = suffix == "host" ? hostCore() : *named;
    if (core != Core::Any && set == "aarch64")
      return llvm::createStringError("target '" + text.str() +
                                     "': no core of aarch64 is known; leave it out");
  }
  if (set == "host") set = host();
  std::string known;
  for (Isa isa : instructionSets()) {
    isa.core = core;
    if (isa.name == set) return isa;
    known += (known.empty() ? "" : ", ") + isa.name.str();
  }
  return llvm::createStringError("unknown target '" + set.str() + "'; known: host, " + known);
}

}  // namespace normc::codegen::cpu
