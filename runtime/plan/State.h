// The state object: a buffer, and what is needed to refuse it where it does not belong.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/plan/Plan.h"

namespace normc::runtime {

class State {
 public:
  static normc_status create(const Plan& plan, int64_t features, std::unique_ptr<State>& state);

  void* data() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }
  const Sizes& sizes() const { return sizes_; }
  const std::vector<FieldInfo>& fields() const { return fields_; }

  /// Refuses a state of another norm, dtype or number of features. `what` names the other side in the error.
  normc_status checkFits(const KernelInfo& kernel, const std::string& normHash, int64_t features) const;
  normc_status checkSame(const State& other) const;

  void initialize();
  /// The memory of a field of exactly `bytes` bytes.
  normc_status field(const char* name, size_t bytes, void*& memory) const;
  normc_status importPowerNorm(const normc_power_norm_checkpoint& checkpoint);

 private:
  struct Free {
    void operator()(void* memory) const;
  };

  std::string norm_, normHash_;
  std::vector<FieldInfo> fields_;
  Sizes sizes_;
  std::unique_ptr<void, Free> memory_;
  size_t bytes_ = 0;
};

/// The object behind a handle (api/Api.cpp).
const State& stateOf(const normc_state* handle);

}  // namespace normc::runtime
