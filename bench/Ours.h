// Our side of a race: kernels compiled here and now, loaded and run as a host does.
#pragma once

#include <string>
#include <vector>

#include "autotune/measure/Copy.h"
#include "autotune/measure/Subject.h"
#include "codegen/Target.h"

namespace normc::bench {
using namespace measure;

/// The default kernels of some problems, compiled into a package in memory.
class Kernels {
 public:
  /// Throws std::runtime_error with the compiler's or the runtime's message.
  static Kernels compile(const std::vector<Problem>&, const codegen::TargetPtr&);
  static Kernels compile(const std::vector<Problem>&);  ///< for this processor
  /// Returns the kernels of a package in a file. Throws as the others do.
  static Kernels read(const std::string& file);

  double seconds() const { return seconds_; }  ///< that compiling took
  const host::Package& package() const { return package_; }
  /// X-sized transfers of the kernel that a plan chose, as its manifest says.
  Traffic traffic(const host::Plan&) const;

 private:
  Kernels(std::string bytes, double seconds);

  double seconds_;
  host::Context context_;
  host::Package package_;
};

/// One call of one problem, on shared tensors, with a state and saved statistics of its own, as in training.
/// The state says that ten thousand steps are done: past every warmup.
class Ours : public Contestant {
 public:
  Ours(const Kernels&, const Problem&, const Tensors&, int threads);
  double run(int64_t calls) override { return subject_.run(calls); }
  /// Which kernel serves the call, without those of other shapes.
  std::string implementation() const override {
    const std::string all = plan().describe();
    return all.substr(0, all.find("rejected:\n"));
  }

  const host::Plan& plan() const { return subject_.plan(); }

 private:
  Buffers buffers_;
  Subject subject_;
};

}  // namespace normc::bench
