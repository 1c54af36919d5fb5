#include "tools/normc/Hardware.h"

#include <algorithm>

#include "autotune/tune/ThisDevice.h"
#include "dsl/Nearest.h"
#include "llvm/Config/llvm-config.h"
#include "runtime/abi/Isa.h"
#include "runtime/normc.h"
#include "tools/normc/Failure.h"
#include "tools/normc/PackageFile.h"
#include "tools/normc/Values.h"

namespace normc::cli {

codegen::Workload Hardware::workloadOf(const tune::Task& task) const {
  return {task.segments,       task.rows,        task.features, std::max<int64_t>(task.threads, 1),
          machine.secondCache, machine.lastCache};
}

Hardware hardwareFor(const std::string& target) {
  Hardware hardware{measure::thisMachine(), valueOf(codegen::findGenerators(target), ExitCode::Usage), {}};
  const codegen::Target& first = *hardware.generators.at(0);
  hardware.site.toolchain = {{"normc", normc_version()}, {"llvm", LLVM_VERSION_STRING}};
  hardware.site.device = tune::thisProcessor(first.name().str());
  hardware.site.device.kind = first.device().str();
  return hardware;
}

Hardware hardwareFor(const std::string& target, const Place& place) {
  if (!place.onCuda()) return hardwareFor(target);
  const tune::Device device =
      translated([&] { return tune::thisCudaDevice(place.index(), place.cudaLibrary()); });
  Hardware hardware = hardwareFor(target == "host" ? device.arch : target);
  if (hardware.site.device.kind != "cuda")
    throw usage("--target " + target + " is not for " + place.text(), "leave it out, or name sm_NN");
  const std::string arch = hardware.site.device.arch;
  hardware.site.device = device;
  hardware.site.device.arch = arch;
  return hardware;
}

std::string targetWord(const std::string& target) {
  const std::string set = target.substr(0, target.find(':'));
  std::vector<std::string> known = codegen::targetNames();
  if (target.starts_with("sm_") || std::find(known.begin(), known.end(), set) != known.end()) return target;
  const std::string hint = didYouMean(set, known, "");
  known.push_back("another sm_NN");
  throw usage("--target is " + inQuotes(set) + "; it must be " + oneOf(known) +
                  ", that of a processor with :zen or :cove behind it for its core",
              hint);
}

bool runsHere(const std::string& target) {
  if (target == "host") return true;
  const Isa *here = cpuIsa(), *named = findIsa(target);
  return here && named && includes(*here, *named);
}

}  // namespace normc::cli
