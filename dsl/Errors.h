// The errors of a file while it is read: the first ones by place, and the number of all.
//
// A file within rule C27 may have 130,000 errors. Those that are not shown are counted only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/Lexer.h"

namespace normc {

class Errors {
 public:
  static constexpr size_t kMostShown = 100;

  explicit Errors(const SourceText& source) : source_(source) {}

  void add(const Location& where, std::string_view rule, std::string_view message, std::string_view hint);
  void add(Diagnostic error);

  /// Returns the number of errors so far.
  size_t count() const { return count_; }

  /// Returns the errors in the order of their places; beyond kMostShown, the last one says how many more
  /// there are.
  std::vector<Diagnostic> inOrder() &&;

 private:
  bool isShown(const Location& where, std::string_view rule, std::string_view message) const;
  void keep(Diagnostic error);

  const SourceText& source_;
  std::vector<Diagnostic> shown_;  // a heap: the last by place is in front
  size_t count_ = 0;
};

}  // namespace normc
