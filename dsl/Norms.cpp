#include "dsl/Norms.h"

#include <algorithm>
#include <unordered_map>

#include "dsl/Build.h"
#include "dsl/Check.h"
#include "dsl/Errors.h"
#include "dsl/Nearest.h"
#include "dsl/Parser.h"

namespace normc {
namespace {

constexpr int kDeepestDescent = 16;
constexpr size_t kLongestLine = 500;
constexpr size_t kMostControls = 16;  // that are reported one by one
// A file may hold 20,000 norms with as many wrong bases: a comparison of all with all would take a minute.
constexpr size_t kMostSuggestions = 20;      // that are made for the bases of one file
constexpr size_t kMostSuggestedNorms = 100;  // of the file, from which they are made

// A norm while its Spec is built from its tree.
struct Draft {
  explicit Draft(NormSyntax&& norm) : syntax(std::move(norm)) {}

  NormSyntax syntax;
  enum { Untouched, Open, Done } stage = Untouched;
  std::shared_ptr<const Spec> spec;  // null after an error
  int descent = 0;                   // number of `from` steps to the first of its line
};

// True for a byte that no text has. Each would be an error of its own.
bool isControl(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
}

class FileReader {
 public:
  FileReader(std::string_view text, const std::string& file, const NormMap& known)
      : bytes_(text.size()), source_(withoutMark(text), file), known_(known) {}

  Result<std::vector<std::shared_ptr<const Spec>>> run() {
    if (std::optional<Diagnostic> error = tooLarge()) return *std::move(error);
    for (NormSyntax& norm : parseSyntax(source_, errors_)) drafts_.emplace_back(std::move(norm));
    if (drafts_.empty() && errors_.count() == 0)
      return Diagnostic{"the file holds no norm",
                        "",
                        "a norm has the form: norm NAME { reduce rows ... }",
                        {source_.file()},
                        ""};
    distinctNames();
    std::vector<std::shared_ptr<const Spec>> specs;
    for (Draft& draft : drafts_) {
      finishLine(draft);
      specs.push_back(draft.spec);
    }
    if (errors_.count() == 0) return specs;
    return std::move(errors_).inOrder();
  }

 private:
  // Rule C27. An error keeps its line, so without limits a file that is no text of norms could cost
  // gigabytes.
  std::optional<Diagnostic> tooLarge() const {
    const std::string hint = "is this a file of norms? One has about ten short lines each";
    const std::string_view text = source_.text();
    if (bytes_ > kLargestNormText)
      return Diagnostic{"the file has more than " + std::to_string(kLargestNormText) + " bytes",
                        "C27",
                        hint,
                        {source_.file()},
                        ""};
    const auto controls = static_cast<size_t>(std::count_if(text.begin(), text.end(), isControl));
    if (controls > kMostControls)
      return Diagnostic{std::to_string(controls) + " of the " + std::to_string(bytes_) +
                            " bytes are control characters, so the file is no text",
                        "C27",
                        hint,
                        {source_.file()},
                        ""};
    for (size_t start = 0, line = 1; start < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', start), text.size());
      const size_t bytes = end - start - (end > start && text[end - 1] == '\r');
      if (bytes > kLongestLine)
        return Diagnostic{"this line has " + std::to_string(bytes) + " bytes; at most " +
                              std::to_string(kLongestLine) + " are read",
                          "C27",
                          hint,
                          {source_.file(), static_cast<int>(line), 1},
                          source_.line(static_cast<int>(line))};
      start = end + 1;
    }
    return std::nullopt;
  }

  // C1
  void distinctNames() {
    for (Draft& draft : drafts_) {
      const Token& name = draft.syntax.name;
      if (const auto [first, isNew] = byName_.emplace(name.text, &draft); !isNew) {
        fail(name, "C1",
             "a norm " + inQuotes(name.text) + " stands already in line " +
                 std::to_string(first->second->syntax.name.where.line),
             "give one of them another name");
      }
    }
  }

  // Returns the norm of this file that the draft starts from; null if there is none.
  Draft* baseInFile(const Draft& draft) const {
    if (!draft.syntax.base) return nullptr;
    const auto named = byName_.find(draft.syntax.base->text);
    return named == byName_.end() ? nullptr : named->second;
  }

  // Finishes the norms of this file that the draft descends from, the first of the line first, and the draft.
  // A line may be as long as the file, so it is no recursion.
  void finishLine(Draft& draft) {
    std::vector<Draft*> line;
    for (Draft* at = &draft; at && at->stage == Draft::Untouched; at = baseInFile(*at)) {
      at->stage = Draft::Open;
      line.push_back(at);
    }
    for (; !line.empty(); line.pop_back()) finish(*line.back());
  }

  void finish(Draft& draft) {
    Spec spec;
    Places places;
    if (const auto& base = draft.syntax.base) places["from"] = {base->where, source_.line(base->where.line)};
    const bool whole = inherit(draft, spec) && draft.syntax.complete;
    spec.name = std::string(draft.syntax.name.text);
    const size_t errorsBefore = errors_.count();
    applyClauses(draft.syntax, source_, spec, places, errors_);
    // A clause with an unknown keyword may be the missing 'reduce'.
    const auto mayBeReduce = [](const Clause& clause) {
      return clause.keyword.isWord("reduce") || !isClause(clause.keyword.text);
    };
    const std::vector<Clause>& clauses = draft.syntax.clauses;
    if (whole && !draft.syntax.base && std::none_of(clauses.begin(), clauses.end(), mayBeReduce)) {  // C3
      fail(
          draft.syntax.name, "C3", "norm " + inQuotes(spec.name) + " has no 'reduce' clause",
          "say what one statistic is taken over: 'reduce rows', 'features', 'segment' or 'segment_features'");
    }
    // A spec with missing parts would break rules because of them, so it is not checked further.
    if (whole && errors_.count() == errorsBefore) {
      for (Diagnostic& broken : checkSpec(spec, places)) errors_.add(std::move(broken));
    }
    if (whole && errors_.count() == errorsBefore) draft.spec = std::make_shared<const Spec>(std::move(spec));
    draft.stage = Draft::Done;
  }

  // Rule C4. Copies the base, which is finished, into `spec`; false if there is no legal base.
  bool inherit(Draft& draft, Spec& spec) {
    if (!draft.syntax.base) return true;
    const Token& base = *draft.syntax.base;
    const Draft* const inFile = baseInFile(draft);
    if (!inFile) {
      const auto found = known_.find(base.text);
      if (found == known_.end()) {
        fail(base, "C4", "there is no norm " + inQuotes(base.text),
             didYouMean(base.text, suggestedNames(draft), "a base is a norm of this file or a built-in one"));
        return false;
      }
      draft.descent = 1;
      spec = *found->second;
      return true;
    }
    if (inFile->stage == Draft::Open) {
      const bool hides = base.text == draft.syntax.name.text && known_.contains(base.text);
      fail(base, "C4", "norm " + inQuotes(draft.syntax.name.text) + " descends from itself",
           hides ? "give it another name: its own hides the built-in norm"
                 : "a chain of 'from' has to end in a norm without one");
      return false;
    }
    if (!inFile->spec) return false;
    draft.descent = inFile->descent + 1;
    if (draft.descent > kDeepestDescent) {
      fail(base, "C4",
           "norm " + inQuotes(draft.syntax.name.text) + " is more than " + std::to_string(kDeepestDescent) +
               " steps of 'from' away from the first of its line",
           "start from a norm nearer to the first");
      return false;
    }
    spec = *inFile->spec;
    return true;
  }

  // Returns the names that a wrong base of the draft may be meant for, its own not among them; none after
  // kMostSuggestions.
  std::vector<std::string> suggestedNames(const Draft& draft) {
    std::vector<std::string> names;
    if (++suggestions_ > kMostSuggestions) return names;
    for (size_t i = 0; i < std::min(drafts_.size(), kMostSuggestedNorms); ++i)
      names.emplace_back(drafts_[i].syntax.name.text);
    for (const auto& [name, spec] : known_) names.push_back(name);
    std::erase(names, draft.syntax.name.text);
    return names;
  }

  void fail(const Token& at, std::string_view rule, std::string_view message, std::string_view hint) {
    errors_.add(at.where, rule, message, hint);
  }

  const size_t bytes_;  // of the file, mark and all
  const SourceText source_;
  const NormMap& known_;
  std::vector<Draft> drafts_;
  std::unordered_map<std::string_view, Draft*> byName_;  // the first of each name
  size_t suggestions_ = 0;
  Errors errors_{source_};
};

}  // namespace

std::string_view withoutMark(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

Result<std::vector<std::shared_ptr<const Spec>>> parseNorms(std::string_view text, const std::string& file,
                                                            const NormMap& known) {
  return FileReader(text, file, known).run();
}

}  // namespace normc
