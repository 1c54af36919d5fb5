// The whole way once: a small kernel is compiled, linked, loaded and judged.
#pragma once

#include <string>

namespace normc::cli {

struct SelfTest {
  bool ok = false;
  std::string text;     ///< what was done, or what went wrong
  std::string threads;  ///< what the runtime says of its threads; empty where it came to no plan
};

SelfTest selfTest();

}  // namespace normc::cli
