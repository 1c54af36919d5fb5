// The sources of the project as text: which there are, what they include, what
// they say outside their comments.
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

/// The lines of `text` in which `word` stands by itself, not as a part of another word.
std::vector<std::string> linesWith(const std::string& text, const std::string& word);

}  // namespace normc
