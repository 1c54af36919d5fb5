// The state object: a buffer, and the facts by which a plan that does not fit it is refused.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/plan/Plan.h"

namespace normc::runtime {

class State {
 public:
  static normc_status create(const Plan& plan, int64_t features, std::unique_ptr<State>& state);

  void* data() const { return memory_->data(); }
  size_t bytes() const { return memory_->bytes(); }
  const Sizes& sizes() const { return sizes_; }
  const std::vector<Field>& fields() const { return fields_; }

  /// Fails if the call's plan has another norm, dtype, number of features, device or context.
  normc_status checkFits(const Plan& plan, int64_t features) const;

  normc_status initialize();
  /// Copy one field of exactly `bytes` bytes, out or in.
  normc_status get(const char* name, void* data, size_t bytes) const;
  normc_status set(const char* name, const void* data, size_t bytes);
  /// Copies a state of the same norm, dtype and number of features, on any device.
  normc_status copy(const State& from);

 private:
  /// Gives the offset of the field, which must have exactly `bytes` bytes.
  normc_status find(const char* name, size_t bytes, size_t& offset) const;
  normc_status checkSame(const State& other) const;

  std::string norm_, normHash_;
  std::vector<Field> fields_;
  Sizes sizes_;
  Place place_;
  std::unique_ptr<MemoryBlock> memory_;
};

/// Returns the object behind a handle (api/Api.cpp).
const State& stateOf(const normc_state* handle);

}  // namespace normc::runtime
