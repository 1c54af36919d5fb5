// State and saved statistics as folders: one .npy file for each field, named after it.
//
// The folder of another norm is refused: every field must be there with its type and shape,
// and no other .npy file.
#pragma once

#include <string>
#include <vector>

#include "autotune/gate/GuardedArguments.h"

namespace normc::cli {

using gate::FieldBuffer;

/// The file of a field.
std::string fileOf(const std::string& folder, const normc_field&);

/// True if the folder exists and holds a .npy file.
bool holdsFields(const std::string& folder);

/// `what` as in messages: "the state".
void readFields(const std::string& folder, const std::string& what, FieldBuffer&);
/// Makes the folder where there is none. Writes all fields, or on failure leaves those of the folder as they
/// are.
void writeFields(const std::string& folder, const FieldBuffer&);

}  // namespace normc::cli
