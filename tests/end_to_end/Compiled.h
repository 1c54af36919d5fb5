// A problem, compiled, packed, loaded: what end-to-end tests start from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/gate/Gate.h"
#include "autotune/gate/Plans.h"
#include "codegen/Package.h"
#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc {

/// Owns a kernel's package and plans. `error` says what went wrong on the way, in which case `plan` is null.
struct Compiled {
  std::optional<host::Context> context;
  std::optional<host::Package> package;
  std::optional<gate::Plans> plans;
  const normc_plan* plan = nullptr;
  const normc_plan* large = nullptr;  ///< takes every call for one that does not fit in caches; null where
                                      ///< the kernel knows none
  std::string error;

  /// Judges the kernel as the gate does: with the numbers of the trial, as a small call, and as a large one
  /// where it knows them. Returns the first verdict that is not good, else that of the small call.
  gate::Verdict judge(const Problem&, const gate::Question&);
  gate::Verdict judge(const Problem&, const gate::Trial&);
};

/// Compiles for the instruction set at hand unless another is named; the plan is
/// for `request`, or for the problem's own text.
std::unique_ptr<Compiled> compiled(const Problem&, const codegen::cpu::Schedule&, const codegen::cpu::Isa&,
                                   int threads = 1);

std::unique_ptr<Compiled> compiled(const Problem&, const codegen::TargetPtr&, const std::string& schedule,
                                   int threads = 1);

/// Opens the bytes of a package and makes the plans of the problem.
std::unique_ptr<Compiled> opened(const Problem&, const std::string& package, int threads = 1);

/// The outputs of a call as bits: -0 is not 0, and a NaN equals itself.
using Bits = std::map<std::string, std::vector<uint64_t>>;
Bits bitsOf(const gate::CallResult&);

/// The problem of a text that names a built-in norm. Fails the test where it is wrong.
Problem problemOf(const std::string& text);

codegen::cpu::Isa hostIsa();

}  // namespace normc
