// From the flags of `compile` and `tune` to problems: the product of what was asked for.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "tools/normc/Files.h"
#include "tools/normc/Values.h"

namespace normc::cli {

/// The entries that a verb takes. Single: those whose results come from one call.
enum class Calls { All, Single };

struct ProblemFlags {
  std::vector<std::string> inputs;  ///< norms, files of norms, and whole problems
  std::vector<std::string> features, dtypes{"f32"}, entries{"forward", "backward", "infer"};
  std::string params, layout = "features_last";
  std::vector<std::string> bindings;
  bool mask = false, segmented = false;

  /// `features`: what --features means to the verb.
  void declare(CLI::App&, const std::string& features, Calls = Calls::All);
  /// True if a flag is given that selects problems of a norm.
  bool shapesNorms() const;
  bool operator==(const ProblemFlags&) const = default;
};

/// Every problem once. A norm gives one for each entry, dtype and feature count, and
/// always those of any number of features; a whole problem gives itself. All that is
/// wrong is in one Failure.
std::vector<Problem> problemsOf(const ProblemFlags&);

/// The files of norms among the inputs.
std::vector<NamedFile> normFilesOf(const ProblemFlags&);

}  // namespace normc::cli
