#include "dsl/Library.h"

#include "dsl/Nearest.h"

namespace normc {
namespace {

struct EmbeddedFile {
  const char* name;
  const char* text;
};

// {"batch_norm", R"norm(...)norm"}, ...; CMake writes it from dsl/specs.
const EmbeddedFile kFiles[] = {
#include "BuiltinNorms.inc"
};

std::string summaryOf(const std::string& text) {
  if (!text.starts_with("// ")) return "";
  return text.substr(3, text.find('\n') - 3);
}

struct Library {
  std::vector<BuiltinNorm> norms;
  NormMap byName;

  // A norm may be based on one of another file, so all files are read as one text.
  Library() {
    std::string all;
    for (const EmbeddedFile& file : kFiles) all += file.text;
    const auto specs = parseNorms(all, "built-in", {});
    if (!specs) {  // only after a faulty change of dsl/specs
      std::fputs(text(specs.errors()).c_str(), stderr);
      std::abort();
    }
    for (const auto& spec : *specs) byName[spec->name] = spec;
    for (const EmbeddedFile& file : kFiles) {
      norms.push_back({file.name, summaryOf(file.text), file.text, byName[file.name]});
    }
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

}  // namespace

const std::vector<BuiltinNorm>& builtinNorms() { return library().norms; }

Result<std::shared_ptr<const Spec>> findNorm(std::string_view name) {
  const NormMap& byName = library().byName;
  if (const auto found = byName.find(name); found != byName.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, spec] : byName) names.push_back(known);
  Diagnostic error;
  error.message = "there is no norm " + inQuotes(name);
  error.hint = didYouMean(name, names, "the built-in norms are " + oneOf(names));
  return error;
}

Result<std::vector<std::shared_ptr<const Spec>>> readNorms(std::string_view text, const std::string& file) {
  return parseNorms(text, file, library().byName);
}

}  // namespace normc
