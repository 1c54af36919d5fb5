#include "bench/cpu/AroundNorms.h"

#include <algorithm>

#include "dsl/Library.h"

namespace normc::bench {
namespace {

const char kOwn[] = R"(
norm rms_norm_sum from rms_norm {
  residual  before(stream = no)
}
)";

}  // namespace

const std::vector<std::string>& aroundNorms() {
  static const std::vector<std::string> all = {"rms_norm_residual",   "rms_norm_sum",
                                               "adaptive_layer_norm", "delta_gated_rms_norm",
                                               "batch_norm_relu",     "gemma_sandwich"};
  return all;
}

Result<std::shared_ptr<const Spec>> findBenchNorm(const std::string& name) {
  static const auto own = *readNorms(kOwn, "the norms of the benchmark");
  const auto at = std::ranges::find(own, name, &Spec::name);
  if (at != own.end()) return *at;
  return findNorm(name);
}

}  // namespace normc::bench
