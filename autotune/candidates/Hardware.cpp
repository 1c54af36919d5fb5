#include "autotune/candidates/Hardware.h"

#include "autotune/tune/ThisDevice.h"
#include "llvm/Config/llvm-config.h"
#include "runtime/abi/Isa.h"
#include "runtime/normc.h"

namespace normc::tune {

codegen::Workload Hardware::workloadOf(const Task& task) const {
  return {task.segments,       task.rows,        task.features, std::max<int64_t>(task.threads, 1),
          machine.secondCache, machine.lastCache};
}

llvm::Expected<Hardware> hardwareFor(const std::string& target) {
  auto generators = codegen::findGenerators(target);
  if (!generators) return generators.takeError();
  const codegen::Target& first = *generators->at(0);
  Hardware hardware{measure::thisMachine(), *generators, {}};
  hardware.site.toolchain = {{"normc", normc_version()}, {"llvm", LLVM_VERSION_STRING}};
  hardware.site.device = thisProcessor(first.name().str());
  hardware.site.device.kind = first.device().str();
  return hardware;
}

bool runsHere(const std::string& target) {
  if (target == "host") return true;
  const Isa *here = cpuIsa(), *named = findIsa(target);
  return here && named && includes(*here, *named);
}

}  // namespace normc::tune
