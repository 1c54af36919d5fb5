#include "codegen/Target.h"

#include "codegen/targets/cpu/CpuTarget.h"
#include "codegen/targets/cuda/CudaTarget.h"
#include "codegen/targets/halide/HalideTarget.h"

namespace normc::codegen {

std::optional<std::string> BoundTarget::whyIllegal(llvm::StringRef text) {
  auto schedule = parse(text);
  return schedule ? (*schedule)->whyIllegal() : llvm::toString(schedule.takeError());
}

llvm::Expected<std::string> Target::link(llvm::ArrayRef<std::string>) const {
  return llvm::createStringError("kernels for " + name().str() + " are not linked");
}

llvm::Expected<TargetPtr> findTarget(llvm::StringRef name) {
  auto gpu = cuda::findTarget(name);
  if (!gpu || *gpu) return gpu;
  return cpu::findTarget(name);
}

llvm::Expected<std::vector<TargetPtr>> findGenerators(llvm::StringRef name) {
  auto target = findTarget(name);
  if (!target) return target.takeError();
  std::vector<TargetPtr> all{std::move(*target)};
  if (all[0]->device() != "cpu") return all;
  auto second = halide::findTarget(name);
  if (second)
    all.push_back(std::move(*second));
  else
    llvm::consumeError(second.takeError());  // one error is sufficient; `normc doctor` reports both
  return all;
}

std::vector<std::string> targetNames() {
  std::vector<std::string> names = cpu::targetNames();
  for (std::string& arch : cuda::targetNames()) names.push_back(std::move(arch));
  return names;
}

}  // namespace normc::codegen
