// The sources of the project as text: the list of files, their includes, their code without comments.
#pragma once

#include <string>
#include <vector>

namespace normc {

struct Source {
  std::string path;  ///< from the root of the checkout, e.g. `dsl/Spec.h`
  std::string text;
};

/// C, C++ and TableGen files under a folder, sorted by path.
std::vector<Source> sourcesUnder(const std::string& folder);
/// One file of the checkout.
std::string readSource(const std::string& path);

struct Include {
  std::string name;
  bool angled;  ///< <name> rather than "name"
};
std::vector<Include> includesOf(const std::string& text);

/// The text with every comment blanked out; strings stay as they are.
std::string withoutComments(const std::string& text);

/// Returns the lines of `text` that contain `word` as a whole word.
std::vector<std::string> linesWith(const std::string& text, const std::string& word);

}  // namespace normc
