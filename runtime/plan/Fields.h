// The memory that a norm publishes: where each field of the state, or of the
// saved statistics, lies for given sizes.
#pragma once

#include <vector>

#include "runtime/package/Package.h"

namespace normc::runtime {

/// Bytes of one field; kHuge if that is no size of this machine.
int64_t fieldBytes(const Field& field, const Sizes& sizes);

/// Writes the offset of each field, at multiples of 64 bytes, and returns the total.
int64_t layOut(const std::vector<Field>& fields, const Sizes& sizes, int64_t* offsets);
int64_t totalBytes(const std::vector<Field>& fields, const Sizes& sizes);

/// Fills what the caller asked about. `owner` names the memory in errors: "the state".
normc_status describeField(const std::vector<Field>& fields, const Sizes& sizes, size_t index,
                           normc_field* out);

/// Gives every field its initial value. `memory` has totalBytes; padding becomes zero.
void initialize(const std::vector<Field>& fields, const Sizes& sizes, void* memory);

/// The norm's fields as text, "psi2:f32[features]"; equal texts have equal layouts.
std::string signature(const std::vector<Field>& fields);

}  // namespace normc::runtime
