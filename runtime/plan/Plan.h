// A problem bound to kernels: everything that does not depend on a call is computed once, so that execute is
// cheap.
//
// If the problem leaves sizes open, a plan may have several kernels. The last serves any call; those before
// it serve some sizes only, e.g. few rows, and are better for them. A call runs the first that serves its
// sizes, which is the kernel that a plan of exactly these sizes would choose.
//
// Immutable after create(); any number of threads may use one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/core/Context.h"
#include "runtime/package/Package.h"
#include "runtime/plan/BoundKernel.h"
#include "runtime/plan/Select.h"

namespace normc::runtime {

class Plan {
 public:
  static normc_status create(std::shared_ptr<const Context> context, std::shared_ptr<const Package> package,
                             const normc_request& request, std::unique_ptr<Plan>& plan);

  /// Returns the kernel that serves any call.
  const Kernel& kernel() const { return kernels_.back()->info(); }
  const std::string& problem() const { return request_.text; }
  const std::string& description() const { return description_; }
  /// Gives one number of the kernel that serves any call.
  normc_status number(const char* name, double& value) const { return kernels_.back()->number(name, value); }
  /// Describe number or tensor `index`; NORMC_OUT_OF_RANGE past the last.  Queries.cpp
  normc_status describeNumber(size_t index, normc_number_info* out) const;
  normc_status describeTensor(size_t index, normc_tensor_info* out) const;
  /// Return what the kernels do with a field, as a sum of normc_field_access; 0 for an index past the last.
  int stateAccess(size_t field) const;
  int savedAccess(size_t field) const;
  int partialAccess(size_t field) const;
  const std::string& normHash() const { return package_->manifest().norms[kernel().norm].hash; }
  const Place& place() const { return place_; }
  const Backend& backend() const { return kernels_.back()->backend(); }

  /// Checks the sizes of a query, and adds the plan's features if the caller gives none.
  normc_status sizes(const normc_sizes& given, Sizes& sizes) const;
  /// Gives the index of the kernel that a call of these sizes runs; null: of the kernel that serves any call.
  normc_status kernelIndex(const Sizes* sizes, size_t& index) const;
  /// Gives bytes that are enough for any call of these sizes, or of fewer segments or rows.
  normc_status workspaceBytes(const Sizes& sizes, size_t& bytes) const;

  /// Gives how often the threads of a call of these sizes wait for each other, if it is executed by parts.
  normc_status barriers(const Sizes& sizes, int32_t& count) const;  // Execute.cpp

  /// Executes the call, or if `part` is not null that part of it.
  normc_status execute(const normc_args& args, const Part* part = nullptr) const;  // Execute.cpp

 private:
  Plan() = default;
  /// Binds the kernel that serves any call, and the kernels that serve some calls better.
  normc_status bind(const Platform& platform, class Selection& selection, const normc_request& request);
  normc_status bindNarrower(const Platform& platform, Selection& selection, const normc_request& request);
  std::string describe(const Selection& selection) const;

  /// Fails if so many features do not make whole groups, pairs and blocks.
  normc_status checkGroups(int64_t features) const;
  /// Fails if the problem does not serve these sizes.
  normc_status checkSizes(const Sizes& sizes) const;
  /// Fails if no call of this plan has parts, or none has so many.
  normc_status checkParts(int32_t count) const;
  const BoundKernel& kernelFor(const Sizes& sizes) const;

  normc_status bindTensors(Call& call) const;
  normc_status bindState(const BoundKernel& bound, Call& call) const;  // BindFields.cpp
  normc_status bindSaved(const BoundKernel& bound, Call& call) const;  // BindFields.cpp
  normc_status sizesOfPartials(Call& call) const;                      // BindPartials.cpp
  normc_status bindPartials(const Kernel& kernel, Call& call) const;   // BindPartials.cpp
  normc_status bindOperands(const Kernel& kernel, Call& call) const;

  std::shared_ptr<const Context> context_;
  std::shared_ptr<const Package> package_;
  ProblemRequest request_;
  Place place_;
  std::vector<std::unique_ptr<const BoundKernel>> kernels_;  ///< the best first; the last serves any call
  std::string description_;
};

}  // namespace normc::runtime
