#include "tools/normc/TargetFlag.h"

#include <algorithm>

#include "autotune/tune/ThisDevice.h"
#include "dsl/ForeignWords.h"
#include "dsl/Nearest.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Values.h"

namespace normc::cli {
namespace {

/// The words of other compilers.
constexpr ForeignWord kTargetWords[] = {
    {"native", "host", "write 'host'"},
    {"avx2", "x86-64-v3", "write 'x86-64-v3'"},
    {"avx512", "x86-64-v4", "write 'x86-64-v4'"},
    {"arm64", "aarch64", "write 'aarch64'"},
    {"neon", "aarch64", "write 'aarch64'"},
    {"znver3", "x86-64-v3", "write 'x86-64-v3:zen3'"},
    {"znver4", "x86-64-v4", "write 'x86-64-v4:zen4'"},
    {"znver5", "x86-64-v4", "write 'x86-64-v4:zen5'"},
    {"a100", "sm_80", "write 'sm_80'"},
    {"h100", "sm_90", "write 'sm_90'"},
    {"h200", "sm_90", "write 'sm_90'"},
    {"b200", "sm_100", "write 'sm_100'"},
    {"cuda", "sm_90", "write 'sm_90', or the sm_NN of another GPU"},
    {"gpu", "sm_90", "write 'sm_90', or the sm_NN of another GPU"},
};

}  // namespace

tune::Hardware hardwareFor(const std::string& target) {
  return valueOf(tune::hardwareFor(target), ExitCode::Usage);
}

tune::Hardware hardwareFor(const std::string& target, const Place& place) {
  if (!place.onCuda()) return hardwareFor(target);
  const tune::Device device =
      place.asked([&] { return tune::thisCudaDevice(place.index(), place.cudaLibrary()); });
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
  const std::string foreign(foreignHint(kTargetWords, set, known));
  const std::string hint = foreign.empty() ? didYouMean(set, known, "") : foreign;
  known.push_back("another sm_NN");
  throw usage("--target is " + inQuotes(set) + "; it must be " + oneOf(known) +
                  "; a CPU target may name a core: x86-64-v4:zen4",
              hint);
}

std::string oneTarget(const std::string& target, const std::string& verb) {
  if (target.find(',') != target.npos)
    throw usage("--target is " + inQuotes(target) + "; " + verb + " takes one target",
                "run it for each of them");
  return targetWord(target);
}

}  // namespace normc::cli
