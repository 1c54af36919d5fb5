// Parses the text of inline PTX.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"

namespace normc::emulator {

/// One operand of an instruction: `$3`, `16`, `[$4+32]`, `{$0, $1}`, `_`.
struct PtxOperand {
  enum Kind { Register, Number, Address, List, Sink } kind = Sink;
  unsigned index = 0;                ///< index of the asm's operand, for a register or an address
  int64_t number = 0;                ///< a number, or the offset of an address
  std::vector<PtxOperand> elements;  ///< elements of a list
};

/// `@$5 ld.global.nc.v4.b32 {$0,$1,$2,$3}, [$4];`
struct PtxStatement {
  std::string text;                ///< the original text
  std::vector<std::string> words;  ///< `ld`, `global`, `nc`, `v4`, `b32`
  std::vector<PtxOperand> operands;
  std::optional<unsigned> predicate;  ///< index of the asm's operand
  bool negated = false;

  bool is(std::initializer_list<llvm::StringRef> first) const;  ///< true if `words` begins with `first`
  bool has(llvm::StringRef word) const;
};

/// Returns the statements of an asm string; nothing if it has labels, declarations, or unsupported operands.
std::optional<std::vector<PtxStatement>> parsePtx(llvm::StringRef text);

/// True if the text is the loop around mbarrier.try_wait.parity that MLIR writes: $0 the address, $1 the
/// parity.
bool isWaitLoop(llvm::StringRef text);

}  // namespace normc::emulator
