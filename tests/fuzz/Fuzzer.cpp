// One target as libFuzzer calls it. A Fault ends the program, and libFuzzer keeps the input.
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/Target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const normc::fuzz::Target& target = []() -> const normc::fuzz::Target& {
    for (const normc::fuzz::Target& each : normc::fuzz::targets())
      if (each.name == NORMC_FUZZ_TARGET) return each;
    std::abort();
  }();
  normc::fuzz::run(target, {reinterpret_cast<const char*>(data), size});
  return 0;
}
