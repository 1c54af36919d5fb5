#include "codegen/targets/cpu/Isa.h"

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

llvm::Expected<Isa> findIsa(llvm::StringRef name) {
  if (name == "host") name = host();
  std::string known;
  for (const Isa& isa : instructionSets()) {
    if (isa.name == name) return isa;
    known += (known.empty() ? "" : ", ") + isa.name.str();
  }
  return llvm::createStringError("unknown target '" + name.str() + "'; known: host, " + known);
}

}  // namespace normc::codegen::cpu
