#include "tools/normc/TargetFlag.h"

#include <algorithm>

#include "autotune/tune/ThisDevice.h"
#include "dsl/Nearest.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Translated.h"
#include "tools/normc/Values.h"

namespace normc::cli {

tune::Hardware hardwareFor(const std::string& target) {
  return valueOf(tune::hardwareFor(target), ExitCode::Usage);
}

tune::Hardware hardwareFor(const std::string& target, const Place& place) {
  if (!place.onCuda()) return hardwareFor(target);
  const tune::Device device =
      translated([&] { return tune::thisCudaDevice(place.index(), place.cudaLibrary()); });
  tune::Hardware hardware = hardwareFor(target == "host" ? device.arch : target);
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
                  "; a CPU target may name a core: x86-64-v4:zen4",
              hint);
}

}  // namespace normc::cli
