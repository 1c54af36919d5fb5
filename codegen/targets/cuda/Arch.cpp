#include "codegen/targets/cuda/Arch.h"

#include "codegen/targets/cuda/Ptx.h"

namespace normc::codegen::cuda {

/// The usual devices. The runtime handles differences between devices of one number.
static const Arch kKnown[] = {
    {.name = "sm_80", .number = 80, .multiprocessors = 108},                      // A100
    {.name = "sm_90", .number = 90, .multiprocessors = 132},                      // H100, H200
    {.name = "sm_100", .number = 100, .accessBytes = 32, .multiprocessors = 148}  // B200
};

llvm::ArrayRef<llvm::StringRef> defaultArchs() {
  static constexpr llvm::StringRef names[] = {"sm_80", "sm_90", "sm_100"};
  return names;
}

/// Returns the architectures that LLVM has code for, from sm_80 on: "sm_80, sm_86, ...".
static std::string knownNames() {
  std::string names;
  for (int number = 80; number < 200; ++number)
    if (const std::string name = "sm_" + std::to_string(number); llvmKnows(name))
      names += (names.empty() ? "" : ", ") + name;
  return names;
}

llvm::Expected<Arch> findArch(llvm::StringRef name) {
  int64_t number = 0;
  llvm::StringRef digits = name;
  if (!digits.consume_front("sm_") || digits.getAsInteger(10, number))
    return llvm::createStringError("no architecture '" + name.str() +
                                   "'; legal: sm_80, sm_90, sm_100 and others from sm_80 on");
  if (number < 80)
    return llvm::createStringError(
        name.str() + " is older than sm_80, the first with bf16; kernels are made from sm_80 on");
  if (!llvmKnows(name))
    return llvm::createStringError("this LLVM does not know " + name.str() + "; it knows " + knownNames());
  // A newer one is planned for like the newest that was looked at, and has its own instructions.
  Arch arch = kKnown[number >= 100 ? 2 : number >= 90 ? 1 : 0];
  if (number > 80 && number < 90) {
    arch.threads = 1536;
    arch.blocks = number >= 89 ? 24 : 16;
  }
  if (number >= 120) {
    arch.threads = 1536;
    arch.blocks = 24;
    arch.accessBytes = 16;
  }
  arch.name = name.str();
  arch.number = number;
  arch.sharedBytes = limits::sharedOfMultiprocessor(number);
  return arch;
}

}  // namespace normc::codegen::cuda
