// Packages made of the kernels in kernels.c, whole or with one thing changed.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "codegen/package/Writer.h"

namespace normc::test {

/// The shared object that kernels.c was compiled to.
std::string kernelObject();

/// The instruction set these kernels are labelled with: one that this processor has.
std::string hostIsa();

// The manifest's words about each kernel. `features` absent: any.
package::Kernel layerNorm(const std::string& entry, std::optional<int64_t> features = {});
package::Kernel powerNorm(const std::string& entry, std::optional<int64_t> features = {});
package::Kernel probe(const std::string& layout, bool segmented, bool mask);
package::Kernel warmup(const std::string& entry);
/// forward_reduce writes rows and sums of squares, commit makes psi2 of them.
package::Kernel sums(const std::string& entry, std::optional<int64_t> features = {});

/// h = x + residual, and of it, without statistics, y = gate ((1 + mod_scale) h + mod_shift): what may stand
/// around a norm. The problem has segments; `residual_out` is h, and there is a gate for each feature.
package::Kernel around(const std::string& entry);

/// layer_norm, power_norm, the probes: one package for most tests, and for the examples.
package::Writer standardPackage();
/// A package of one kernel.
package::Writer packageOf(package::Kernel kernel);
package::Writer packageOf(std::vector<package::Kernel> kernels);

/// A file in the tests' temporary folder.
std::string temporaryPath(const std::string& name);

}  // namespace normc::test
