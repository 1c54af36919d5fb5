// The built-in norms: the files of dsl/specs, embedded at build time.
//
// They are read on first use and never change afterwards. Every function here may be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/Norms.h"
#include "dsl/Result.h"
#include "dsl/Spec.h"

namespace normc {

struct BuiltinNorm {
  std::string name;
  std::string summary;  ///< one line: the first comment line of its file
  std::string text;     ///< the whole file
  std::shared_ptr<const Spec> spec;
};

/// Returns all built-in norms, ordered by name.
const std::vector<BuiltinNorm>& builtinNorms();

/// Returns the built-in norm of that name; the error suggests the nearest name.
Result<std::shared_ptr<const Spec>> findNorm(std::string_view name);

/// parseNorms (Norms.h) for a user's file, whose norms may be based on built-in ones.
Result<std::vector<std::shared_ptr<const Spec>>> readNorms(std::string_view text, const std::string& file);

}  // namespace normc
