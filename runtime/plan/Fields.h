// The memory that a norm publishes: the layout of the state and of the saved statistics for given sizes.
#pragma once

#include <vector>

#include "runtime/package/Package.h"

namespace normc::runtime {

/// Returns the bytes of one field; kHuge if no memory holds them.
int64_t fieldBytes(const Field& field, const Sizes& sizes);

/// Writes the offset of each field, at multiples of 64 bytes, and returns the total.
int64_t layOut(const std::vector<Field>& fields, const Sizes& sizes, int64_t* offsets);
int64_t totalBytes(const std::vector<Field>& fields, const Sizes& sizes);

/// Describes field `index` in `out`; NORMC_OUT_OF_RANGE past the last. `access`: a sum of normc_field_access.
normc_status describeField(const std::vector<Field>& fields, const Sizes& sizes, size_t index, int access,
                           normc_field* out);

/// Gives every field its initial value. `memory` has totalBytes; padding becomes zero.
void initialize(const std::vector<Field>& fields, const Sizes& sizes, void* memory);

/// Returns the fields as text, "psi2:f32[features]"; equal texts have equal layouts.
std::string signature(const std::vector<Field>& fields);

}  // namespace normc::runtime
