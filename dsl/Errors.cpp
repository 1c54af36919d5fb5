#include "dsl/Errors.h"

#include <algorithm>
#include <tuple>

namespace normc {
namespace {

auto order(const Location& where, std::string_view rule, std::string_view message) {
  return std::tuple(where.line, where.column, rule, message);
}

bool before(const Diagnostic& a, const Diagnostic& b) {
  return order(a.where, a.rule, a.message) < order(b.where, b.rule, b.message);
}

}  // namespace

void Errors::add(const Location& where, std::string_view rule, std::string_view message,
                 std::string_view hint) {
  ++count_;
  if (isShown(where, rule, message))
    keep(source_.error(where, std::string(rule), std::string(message), std::string(hint)));
}

void Errors::add(Diagnostic error) {
  ++count_;
  if (isShown(error.where, error.rule, error.message)) keep(std::move(error));
}

bool Errors::isShown(const Location& where, std::string_view rule, std::string_view message) const {
  if (shown_.size() < kMostShown) return true;
  const Diagnostic& last = shown_.front();
  return order(where, rule, message) < order(last.where, last.rule, last.message);
}

void Errors::keep(Diagnostic error) {
  if (shown_.size() == kMostShown) {
    std::pop_heap(shown_.begin(), shown_.end(), before);
    shown_.pop_back();
  }
  shown_.push_back(std::move(error));
  std::push_heap(shown_.begin(), shown_.end(), before);
}

std::vector<Diagnostic> Errors::inOrder() && {
  std::sort_heap(shown_.begin(), shown_.end(), before);
  if (count_ > shown_.size())
    shown_.push_back({"there are " + std::to_string(count_ - shown_.size()) + " more errors",
                      "",
                      "",
                      {source_.file()},
                      ""});
  return std::move(shown_);
}

}  // namespace normc
