#include "dsl/Comments.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "dsl/Errors.h"
#include "dsl/Lexer.h"
#include "dsl/Norms.h"
#include "dsl/Print.h"

namespace normc {
namespace {

/// A place of a file: the number of its norm from 0, and the word of a clause; "norm" for the beginning of
/// the norm, "}" for its end, "" for the end of the file.
using Anchor = std::pair<size_t, std::string>;

struct Place {
  size_t begin, end;  ///< offsets; `end` is behind the last token
  Anchor anchor;
};

/// The places of a text in their order.
struct Places {
  std::vector<Place> list;

  explicit Places(const SourceText& text) {
    Errors none(text);
    size_t norm = 0;
    int depth = 0;
    bool begins = true;  // the next word begins a clause
    std::string_view last;
    for (const Token& token : lex(text, none)) {
      const auto at = static_cast<size_t>(token.text.data() - text.text().data());
      if (token.kind == Token::End) break;
      const bool goesOn = last == "," || last == "=" || token.is(',') || token.is('=');
      if (depth == 0 && token.isWord("norm")) {
        list.push_back({at, at, {norm, "norm"}});
      } else if (depth == 1 && token.is('}')) {
        list.push_back({at, at, {norm++, "}"}});
      } else if (depth == 1 && token.kind == Token::Word && (begins || (token.startsLine && !goesOn))) {
        list.push_back({at, at, {norm, std::string(token.text)}});
      }
      if (!list.empty()) list.back().end = at + token.text.size();
      begins = depth == 0 && token.is('{');
      depth += token.is('{') || token.is('(');
      depth -= token.is('}') || token.is(')');
      last = token.text;
    }
    list.push_back({text.text().size(), text.text().size(), {norm, ""}});
  }

  /// Returns the number of the first place that begins behind an offset.
  size_t behind(size_t offset) const {
    return size_t(std::upper_bound(list.begin(), list.end(), offset,
                                   [](size_t a, const Place& b) { return a < b.begin; }) -
                  list.begin());
  }
};

struct Comments {
  std::vector<std::string> before;  ///< lines; an empty one is a blank line
  std::string behind;
};

/// Reads the comments of a text, each at its place among those of `known`.
class Reader {
 public:
  Reader(const SourceText& text, const Places& known) : text_(text), places_(text) {
    for (const Place& each : known.list) known_[each.anchor];
  }

  std::map<Anchor, Comments> run() {
    const std::string_view text = text_.text();
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      line(begin, text.substr(begin, end - begin));
      begin = end + 1;
    }
    return std::move(known_);
  }

 private:
  void line(size_t begin, std::string_view line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
      line.remove_suffix(1);
    const size_t at = line.find("//"), code = line.find_first_not_of(" \t");
    if (at != line.npos) return comment(begin + at, std::string(line.substr(at)), code < at);
    if (code != line.npos || last_ == nullptr) return void(last_ = nullptr);
    if (!last_->before.empty()) last_->before.emplace_back();
    last_ = nullptr;
  }

  void comment(size_t offset, std::string comment, bool isBehind) {
    last_ = nullptr;
    const size_t next = places_.behind(offset);
    size_t place = next;
    if (next > 0) {  // code begins with the first place
      const Place& last = places_.list[next - 1];
      const auto at = known_.find(last.anchor);
      if (isBehind && at != known_.end() && at->second.behind.empty())
        return void(at->second.behind = std::move(comment));
      if (at != known_.end() && (isBehind || offset < last.end)) place = next - 1;
    }
    while (!known_.contains(places_.list[place].anchor)) ++place;  // the end of the file is in both texts
    Comments& comments = known_[places_.list[place].anchor];
    comments.before.push_back(std::move(comment));
    if (!isBehind && place >= next) last_ = &comments;
  }

  const SourceText& text_;
  const Places places_;
  std::map<Anchor, Comments> known_;
  Comments* last_ = nullptr;  ///< of the line before, if that is a comment alone
};

}  // namespace

std::string withComments(std::string_view source, std::string_view canonical) {
  const SourceText from(withoutMark(source), ""), to(canonical, "");
  const Places places(to);
  std::map<Anchor, Comments> comments = Reader(from, places).run();
  std::string text;
  for (size_t begin = 0, place = 0; begin <= canonical.size();) {
    const size_t end = std::min(canonical.find('\n', begin), canonical.size());
    std::string_view line = canonical.substr(begin, end - begin);
    std::string behind;
    for (; place < places.list.size() && places.list[place].begin <= end; ++place) {
      const auto& [norm, word] = places.list[place].anchor;
      if (word.empty() && end < canonical.size()) break;
      const Comments its = std::exchange(comments.at({norm, word}), {});
      const bool inside = word != "norm" && !word.empty();
      for (const std::string& each : its.before) text += (inside && !each.empty() ? "  " : "") + each + "\n";
      if (!its.behind.empty()) behind += "  " + its.behind;
    }
    if (end < canonical.size()) text += std::string(line) + behind + "\n";
    begin = end + 1;
  }
  return text;
}

std::string textWithComments(std::string_view source, const std::vector<std::shared_ptr<const Spec>>& norms) {
  const SourceText from(withoutMark(source), "");
  std::vector<std::set<std::string>> kept(norms.size());
  for (const auto& [anchor, comments] : Reader(from, Places(from)).run())
    if (anchor.first < norms.size() && !(comments.before.empty() && comments.behind.empty()))
      kept[anchor.first].insert(anchor.second);
  std::string text;
  for (size_t i = 0; i < norms.size(); ++i) text += (i ? "\n" : "") + print(*norms[i], kept[i]);
  return withComments(source, text);
}

}  // namespace normc
