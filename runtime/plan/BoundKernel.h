// A kernel of a package, bound for a plan: its code is loaded, its numbers are set, and facts about its
// operands are collected. Immutable.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/plan/Backend.h"

namespace normc::runtime {

class BoundKernel {
 public:
  /// Returns kUnfit if the device or its driver refuses the kernel. If there is a `general` kernel, a number
  /// of the request may belong to that one only, e.g. the size from which on it uses non-temporal stores.
  static normc_status create(const Platform& platform, const Context& context, const Package& package,
                             size_t index, const normc_request& request, const BoundKernel* general,
                             std::unique_ptr<const BoundKernel>& kernel);

  const Kernel& info() const { return info_; }
  size_t index() const { return index_; }  ///< index in the manifest
  const std::vector<double>& scalars() const { return scalars_; }
  /// Gives the value of the number of that name; NORMC_NOT_FOUND if the kernel has none.
  normc_status number(const char* name, double& value) const;
  const Backend& backend() const { return *backend_; }

  static constexpr int kUnused = -1;
  /// Returns the index of a tensor's operand, or kUnused.
  int operandOf(int tensor) const { return operandOf_[tensor]; }
  /// True for an input that a call may give although the kernel does not read it.
  bool ignores(int tensor) const { return ignores_[tensor]; }
  /// Returns the tensor that this one equals, so that no call takes it; empty if there is none.
  std::optional<Tensor> same(int tensor) const { return same_[tensor]; }
  bool readsState() const { return readsState_; }
  bool readsSaved() const { return readsSaved_; }
  /// Returns what the kernel does with a field, as a sum of normc_field_access.
  int stateAccess(size_t field) const { return stateAccess_[field]; }
  int savedAccess(size_t field) const { return savedAccess_[field]; }
  /// Returns the fields of the state that this entry does not write.
  const std::vector<size_t>& copiedFields() const { return copiedFields_; }

  /// True if the other takes the same tensors, of the same types and shapes, and reads and writes the same of
  /// them.
  bool takesTensorsOf(const BoundKernel& other) const;

 private:
  BoundKernel(const Kernel& info, size_t index) : info_(info), index_(index) {}
  normc_status bindNumbers(const normc_request& request, const BoundKernel* general);
  normc_status refuseNumber(const char* name) const;
  void noteOperands();

  const Kernel& info_;
  size_t index_;
  std::vector<double> scalars_;
  std::unique_ptr<const Backend> backend_;
  std::array<int, kTensorCount> operandOf_;
  std::array<bool, kTensorCount> ignores_ = {};
  std::array<std::optional<Tensor>, kTensorCount> same_ = {};
  bool readsState_ = false, readsSaved_ = false;
  std::vector<uint8_t> stateAccess_, savedAccess_;
  std::vector<size_t> copiedFields_;
};

}  // namespace normc::runtime
