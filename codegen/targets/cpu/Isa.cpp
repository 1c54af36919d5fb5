#include "codegen/targets/cpu/Isa.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

namespace normc::codegen::cpu {

const std::vector<Isa>& instructionSets() {
  static const std::vector<Isa> sets{
      {"x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", "", 32, 16, false},
      {"x86-64-v4", "x86_64-unknown-linux-gnu", "x86-64-v4", "-prefer-256-bit", 64, 32, true},
      {"x86-64-v4-bf16", "x86_64-unknown-linux-gnu", "x86-64-v4", "-prefer-256-bit,+avx512bf16", 64, 32, true, true},
      {"aarch64", "aarch64-unknown-linux-gnu", "generic", "+neon,+fullfp16", 16, 32, false},
  };
  return sets;
}

static llvm::StringRef host() {
#if defined(__aarch64__)
  return "aarch64";
#else
  auto features = llvm::sys::getHostCPUFeatures();
  bool v4 = true;
  for (const char* f : {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) v4 &= features.lookup(f);
  return !v4 ? "x86-64-v3" : features.lookup("avx512bf16") ? "x86-64-v4-bf16" : "x86-64-v4";
#endif
}

static Core hostCore() {
  constexpr llvm::StringRef kCoves[] = {"icelake",        "tigerlake",     "rocketlake",    "alderlake", "raptorlake",
                                        "sapphirerapids", "emeraldrapids", "graniterapids", "meteorlake", "arrowlake",
                                        "lunarlake",      "pantherlake",   "diamondrapids"};
  const llvm::StringRef cpu = llvm::sys::getHostCPUName();
  if (cpu.starts_with("znver")) return Core::Zen;
  return llvm::any_of(kCoves, [&](llvm::StringRef cove) { return cpu.starts_with(cove); }) ? Core::Cove : Core::Any;
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
      return llvm::createStringError("unknown core '" + suffix.str() + "' in target '" + text.str() + "'; known: host, any, zen, cove");
    core = suffix == "host" ? hostCore() : *named;
    if (core != Core::Any && set == "aarch64")
      return llvm::createStringError("target '" + text.str() + "': no core of aarch64 is known; leave it out");
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
