// A problem bound to a kernel: everything that does not depend on a call,
// computed once, so that execute only has to look.
//
// Immutable after create(); any number of threads may use one.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/Context.h"
#include "runtime/package/Package.h"
#include "runtime/plan/Backend.h"
#include "runtime/plan/ProblemText.h"

namespace normc::runtime {

class Plan {
 public:
  static normc_status create(std::shared_ptr<const Context> context, std::shared_ptr<const Package> package,
                             const normc_request& request, std::unique_ptr<Plan>& plan);

  const KernelInfo& kernel() const { return *kernel_; }
  const std::string& problem() const { return request_.text; }
  size_t kernelIndex() const { return kernelIndex_; }
  const std::string& description() const { return description_; }
  const std::string& normHash() const { return package_->manifest().norms[kernel_->norm].hash; }
  const Place& place() const { return place_; }
  const Backend& backend() const { return *backend_; }

  /// The sizes of a query: checked, with the plan's features where the caller gives none.
  normc_status sizes(const normc_sizes& given, Sizes& sizes) const;
  /// Enough for any call of these sizes.
  normc_status workspaceBytes(const Sizes& sizes, size_t& bytes) const;

  normc_status execute(const normc_args& args) const;  // Execute.cpp

 private:
  Plan() = default;
  /// To one kernel of the package, whose code is loaded.
  normc_status bind(const Platform& platform, size_t kernel, const normc_request& request);
  normc_status bindNumbers(const normc_request& request);
  void noteOperands();
  std::string describe(const class Selection& selection) const;

  /// Whether the problem and the kernel serve these sizes.
  normc_status checkSizes(const Sizes& sizes) const;

  normc_status bindTensors(Call& call) const;
  normc_status bindState(Call& call) const;
  normc_status bindSaved(Call& call) const;
  normc_status bindOperands(Call& call) const;

  std::shared_ptr<const Context> context_;
  std::shared_ptr<const Package> package_;
  ProblemRequest request_;
  Place place_;
  size_t kernelIndex_ = 0;
  const KernelInfo* kernel_ = nullptr;
  std::vector<double> scalars_;
  std::unique_ptr<const Backend> backend_;
  std::string description_;

  // What the kernel's operands say, by argument.
  static constexpr int kUnused = -1;
  std::array<int, kTensorCount> operandOf_;  ///< index of the operand, or kUnused
  bool readsState_ = false, readsSaved_ = false, writesSaved_ = false;
  std::vector<size_t> copiedFields_;  ///< of the state: those that this entry does not write
};

}  // namespace normc::runtime
