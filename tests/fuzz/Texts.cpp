// Texts of the language: reading ends with norms or with errors, and what is printed is read back.
#include <algorithm>

#include "dsl/Comments.h"
#include "dsl/Library.h"
#include "dsl/Print.h"
#include "tests/fuzz/Target.h"

namespace normc::fuzz {
namespace {

const std::string kFile = "input.norm";

void checkErrors(const std::vector<Diagnostic>& errors, std::string_view text) {
  require(!errors.empty(), "a text without norms has an error");
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  for (const Diagnostic& error : errors) {
    require(!error.message.empty(), "an error says what is wrong");
    require(error.where.line >= 0 && error.where.line <= lines, "an error is at a line of the text");
    require(error.where.line == 0 || error.where.column >= 1, "an error has a column");
    require(error.text().find("error: ") != std::string::npos, "an error prints as one");
  }
}

/// Returns the number of lines with a comment.
size_t commentsIn(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find("//", at)) != text.npos;
       at = std::min(text.find('\n', at), text.size()))
    ++count;
  return count;
}

}  // namespace

void texts(std::string_view text) {
  const auto specs = readNorms(text, kFile);
  const auto again = readNorms(text, kFile);
  require(bool(specs) == bool(again), "reading depends on the text alone");
  if (!specs) {
    checkErrors(specs.errors(), text);
    require(normc::text(specs.errors()) == normc::text(again.errors()), "errors depend on the text alone");
    return;
  }
  std::string all;
  for (const auto& spec : *specs) {
    const std::string printed = print(*spec);
    const auto back = readNorms(printed, kFile);
    require(bool(back), "a printed norm is legal: " + printed);
    require(back->size() == 1 && *back->front() == *spec, "a printed norm is the same norm: " + printed);
    require(print(*back->front()) == printed, "a printed norm prints the same: " + printed);
    all += (all.empty() ? "" : "\n") + printed;
  }
  const std::string commented = withComments(text, all);
  require(commentsIn(commented) == commentsIn(text), "each comment is kept: " + commented);
  const auto back = readNorms(commented, kFile);
  require(bool(back) && back->size() == specs->size(), "comments leave a legal text: " + commented);
  require(withComments(commented, all) == commented, "comments stay where they are: " + commented);
}

std::vector<std::string> seedsOfTexts() {
  std::vector<std::string> seeds;
  for (const BuiltinNorm& norm : builtinNorms()) seeds.push_back(norm.text);
  seeds.push_back(
      "// a\n\nnorm a {  // b\n  moment raw  // c\n  // d\n  reduce rows\n  backward exact  // e\n}  // f\n");
  seeds.push_back("# two norms\nnorm a = layer_norm {\n  eps 1e-6\n}\nnorm b = a with {\n  bias\n}\n");
  return seeds;
}

}  // namespace normc::fuzz
