// The kernels of wild.c as candidates of a search.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autotune/tune/LiveLab.h"

namespace normc::tune::test {

/// Both streams of a command.
std::string outputOf(const std::string& command, int* code = nullptr);

/// A test with a folder of its own, in which the packages are.
class WildTest : public testing::Test {
 protected:
  WildTest();
  ~WildTest() override;

  /// A package of one entry of wild.c. `planted`: what `planted` writes.
  BuiltCandidate made(const std::string& entry, double planted = 0) const;
  /// Points named after their entries; the first is the default.
  static Landscape landscapeOf(const std::vector<std::string>& entries);
  static Setting setting();
  /// Makes each point's package.
  LiveLab::Callbacks callbacks(const Landscape&, Journal* journal = nullptr) const;

  /// Makes the folder a bundle: a task for each number of rows, with these entries as candidates.
  void pack(const std::vector<std::string>& entries, const std::vector<int64_t>& rows = {kRows});

  static constexpr int64_t kFeatures = 24, kRows = 50;
  std::string folder_;
  double planted_ = 0;
};

}  // namespace normc::tune::test
