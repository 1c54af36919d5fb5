// Compiles, links, loads and judges one small kernel.
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
