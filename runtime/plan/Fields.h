// The memory that a norm publishes: the layout of the state and of the saved statistics for given sizes.
#pragma once

#include <vector>

#include "runtime/package/Package.h"

namespace normc::runtime {

/// Returns the bytes of one field; kHuge if no memory holds them.
int64_t fieldBytes(const Field& field, const Sizes& sizes);

/// The distance that the fields of a partial keep: none, since all are f64.
inline constexpr int64_t kPacked = 8;

/// Writes the offset of each field, at multiples of `alignment` bytes, and returns the total.
int64_t layOut(const std::vector<Field>& fields, const Sizes& sizes, int64_t* offsets,
               int64_t alignment = kAlignment);
int64_t totalBytes(const std::vector<Field>& fields, const Sizes& sizes, int64_t alignment = kAlignment);

/// Describes field `index` in `out`; NORMC_OUT_OF_RANGE past the last. `access`: a sum of normc_field_access.
normc_status describeField(const std::vector<Field>& fields, const Sizes& sizes, size_t index, int access,
                           normc_field* out, int64_t alignment = kAlignment);

/// Gives every field its initial value. `memory` has totalBytes; padding becomes zero.
void initialize(const std::vector<Field>& fields, const Sizes& sizes, void* memory);

/// Returns the fields as text, "psi2:f32[features]"; equal texts have equal layouts.
std::string signature(const std::vector<Field>& fields);

}  // namespace normc::runtime
