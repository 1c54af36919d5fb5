// Whether a call is legal, decided without the runtime: the rules of normc_args in normc.h, element by
// element and byte by byte. Of a plan only its queries are asked.
#pragma once

#include <bitset>
#include <string>
#include <vector>

#include "tests/fuzz/CallInput.h"

namespace normc::fuzz {

/// Bytes of the block.
using Set = std::bitset<kArena>;

/// The memory of one argument, element by element.
struct Memory {
  std::string name;
  std::vector<int64_t> elements;  ///< offsets in the arena, in the order of the rows
  int64_t width = 1;
  bool written = false;
  const Memory* mayBe = nullptr;
  bool isStrided = false;  ///< of an output: more strides are refused than have to be
  Set bytes;
};

/// Unclear: the rules leave it to the runtime, e.g. whether this call needs as much workspace as any.
enum class Verdict { Legal, Illegal, Unclear };

struct Judgement {
  Verdict verdict = Verdict::Legal;
  std::string why;     ///< which rule is broken, if it is illegal
  bool inside = true;  ///< false: an element is not in the block, so that the call must not be executed
  /// True if the runtime may refuse the strides of an output although its elements are apart.
  bool mayRefuseStrides = false;
  normc_sizes sizes = {};
  std::vector<Memory> memories;  ///< of all arguments but the workspace, in the order of normc_args
};

Judgement judge(const Input&);

}  // namespace normc::fuzz
