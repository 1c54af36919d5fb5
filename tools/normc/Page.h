// Parts of a page of HTML with pictures of SVG, which needs no other file, no script and no network. Its
// colours follow the reader's choice of light or dark.
#pragma once

#include <string>
#include <vector>

namespace normc::cli {

/// Returns the text for a place in HTML: of markup it has none.
std::string escaped(const std::string& text);

/// Returns a page: the title, its style, and the body.
std::string page(const std::string& title, const std::string& body);

/// Returns `<name>content</name>`. `content` is markup.
std::string element(const std::string& name, const std::string& content, const std::string& attributes = "");

/// Returns a table. Cells are plain text; the first row has the headings, and a heading that begins with '>'
/// is of a column of numbers.
std::string tableOf(const std::vector<std::vector<std::string>>& rows);

/// A value with its interval, and the text that is shown beside it or when it is pointed at.
struct Mark {
  double value, low, high;
  std::string text;
  bool chosen = false;
};

/// Returns a picture of candidates side by side, in the order given: the value of each over a line at 1.
std::string landscapePicture(const std::vector<Mark>&);

/// Returns a picture of candidates below each other, with their intervals and texts, over a line at 1.
std::string racePicture(const std::vector<Mark>&);

}  // namespace normc::cli
