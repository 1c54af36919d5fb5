#include "runtime/plan/Select.h"

#include <algorithm>
#include <vector>

#include "runtime/core/Error.h"

namespace normc::runtime {
namespace {

std::string text(std::optional<int64_t> size) { return size ? std::to_string(*size) : "any"; }

std::string text(const std::map<std::string, int64_t>& bindings) {
  std::string result;
  for (const auto& [key, value] : bindings)
    result += (result.empty() ? "" : ",") + key + "=" + std::to_string(value);
  return result.empty() ? "none" : result;
}

/// Why the kernel computes something else; empty if it does not.
std::string problemDiffers(const KernelInfo& kernel, const ProblemRequest& request) {
  const ProblemParts &has = kernel.parts, &wants = request.parts;
  const auto differs = [](std::string_view what, const std::string& has, const std::string& wants) {
    return std::string(what) + " " + has + ", not " + wants;
  };
  if (has.data != wants.data) return differs("is for data", has.data, wants.data);
  if (has.params != wants.params) return differs("is for params", has.params, wants.params);
  if (has.layout != wants.layout) return differs("is for layout", has.layout, wants.layout);
  if (has.segmented != wants.segmented)
    return has.segmented ? "is for three dimensions, not two" : "is for two dimensions, not three";
  if (has.mask != wants.mask) return has.mask ? "needs a mask" : "takes no mask";
  if (has.bindings != wants.bindings) return differs("is for", text(has.bindings), text(wants.bindings));
  if (has.features && has.features != wants.features)
    return differs("is for features", text(has.features), text(wants.features));
  return {};
}

/// Why the kernel cannot serve the sizes; empty if it can.
std::string limitsRefuse(const KernelInfo& kernel, const ProblemRequest& request) {
  const auto rows = request.totalRows();
  if (kernel.rowsMin == 0 && kernel.rowsMax == kHuge) return {};
  std::string serves = "serves " + std::to_string(kernel.rowsMin) + " to ";
  serves += (kernel.rowsMax == kHuge ? "any number of" : std::to_string(kernel.rowsMax)) + " rows";
  if (!rows) return serves + ", not any number";
  if (*rows < kernel.rowsMin || *rows > kernel.rowsMax) return serves + ", not " + std::to_string(*rows);
  return {};
}

/// Why the kernel cannot run here; empty if it can.
std::string processorRefuses(const KernelInfo& kernel, const Isa* cpu, const Isa* cap) {
  if (kernel.device != "cpu") return "is for device `" + kernel.device + "`; this runtime serves `cpu`";
  const Isa* const isa = findIsa(kernel.isa);
  if (!isa) return "needs `" + kernel.isa + "`, which this runtime does not know";
  if (!cpu || isa->machine != cpu->machine || isa->level > cpu->level)
    return "needs " + kernel.isa + "; this processor has " +
           std::string(cpu ? cpu->name : "none of " + std::string(isaNames()));
  if (cap && isa->level > cap->level)
    return "needs " + kernel.isa + ", newer than the cap " + std::string(cap->name);
  return {};
}

/// What sets the better of two kernels apart; empty if only their order does.
std::string advantage(const KernelInfo& better, const KernelInfo& other) {
  if (findIsa(better.isa)->level != findIsa(other.isa)->level) return "has the newer instruction set";
  if (better.parts.features.has_value() != other.parts.features.has_value())
    return "is compiled for exactly these features";
  if (better.rowsMax - better.rowsMin != other.rowsMax - other.rowsMin) return "has the narrower limits";
  return {};
}

bool precedes(const KernelInfo& a, const KernelInfo& b) {
  const int levelA = findIsa(a.isa)->level, levelB = findIsa(b.isa)->level;
  if (levelA != levelB) return levelA > levelB;
  if (a.parts.features.has_value() != b.parts.features.has_value()) return a.parts.features.has_value();
  return a.rowsMax - a.rowsMin < b.rowsMax - b.rowsMin;
}

std::string label(size_t index, const KernelInfo& kernel) {
  return "kernel " + std::to_string(index) + " (" + kernel.problem + ", " + kernel.isa + ", " +
         kernel.generator + ")";
}

normc_status noSuchNorm(const Manifest& manifest, const ProblemRequest& request) {
  std::string entries, norms;
  std::vector<std::string_view> seen;
  for (const KernelInfo& kernel : manifest.kernels) {
    const bool sameNorm = kernel.parts.norm == request.parts.norm;
    const std::string& name = sameNorm ? kernel.parts.entry : kernel.parts.norm;
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    std::string& list = sameNorm ? entries : norms;
    list += (list.empty() ? "" : ", ") + name;
  }
  if (!entries.empty())
    return fail(NORMC_NOT_FOUND, "the package has no ", request.parts.entry, " of `", request.parts.norm,
                "`; it has: ", entries);
  return fail(NORMC_NOT_FOUND, "the package has no norm `", request.parts.norm,
              "`; it has: ", norms.empty() ? std::string("none") : norms);
}

}  // namespace

normc_status selectKernel(const Manifest& manifest, const ProblemRequest& request, const Isa* cpu,
                          const Isa* cap, Choice& choice) {
  std::vector<size_t> able;
  std::string refused;
  bool related = false, otherProcessor = false;
  for (size_t i = 0; i < manifest.kernels.size(); ++i) {
    const KernelInfo& kernel = manifest.kernels[i];
    if (kernel.parts.norm != request.parts.norm || kernel.parts.entry != request.parts.entry) continue;
    related = true;
    std::string reason = problemDiffers(kernel, request);
    if (reason.empty()) reason = limitsRefuse(kernel, request);
    if (reason.empty()) {
      reason = processorRefuses(kernel, cpu, cap);
      otherProcessor |= !reason.empty();
    }
    if (reason.empty())
      able.push_back(i);
    else
      refused += "  " + label(i, kernel) + ": " + reason + "\n";
  }
  if (!related) return noSuchNorm(manifest, request);
  if (able.empty()) {
    refused.pop_back();
    return fail(otherProcessor ? NORMC_FAILED_PRECONDITION : NORMC_NOT_FOUND,
                "no kernel of the package serves ", request.text, " here:\n", refused);
  }

  std::sort(able.begin(), able.end(), [&](size_t a, size_t b) {
    const KernelInfo &first = manifest.kernels[a], &second = manifest.kernels[b];
    return precedes(first, second) || (!precedes(second, first) && a < b);
  });
  const KernelInfo& best = manifest.kernels[able[0]];
  choice.kernel = able[0];
  choice.reason = "it is the only one that serves the request here";
  for (size_t i = 1; i < able.size(); ++i) {
    const std::string edge = advantage(best, manifest.kernels[able[i]]);
    choice.rejected += "  " + label(able[i], manifest.kernels[able[i]]) + ": kernel " +
                       std::to_string(able[0]) + " " +
                       (edge.empty() ? "comes before it in the package" : edge) + "\n";
    if (i == 1)
      choice.reason =
          "of those that serve the request here, it " + (edge.empty() ? "comes first in the package" : edge);
  }
  choice.rejected += refused;
  return NORMC_OK;
}

}  // namespace normc::runtime
