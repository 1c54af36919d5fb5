// The text of inline PTX, taken apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"

namespace normc::emulator {

/// One operand of an instruction: `$3`, `16`, `[$4+32]`, `{$0, $1}`, `_`.
struct PtxOperand {
  enum Kind { Register, Number, Address, List, Sink } kind = Sink;
  unsigned index = 0;                ///< of the asm's operand, for a register or an address
  int64_t number = 0;                ///< a number, or what is added to an address
  std::vector<PtxOperand> elements;  ///< of a list
};

/// `@$5 ld.global.nc.v4.b32 {$0,$1,$2,$3}, [$4];`
struct PtxStatement {
  std::string text;                ///< as it was written
  std::vector<std::string> words;  ///< `ld`, `global`, `nc`, `v4`, `b32`
  std::vector<PtxOperand> operands;
  std::optional<unsigned> predicate;  ///< of the asm's operand
  bool negated = false;

  bool is(std::initializer_list<llvm::StringRef> first) const;  ///< whether its words begin so
  bool has(llvm::StringRef word) const;
};

/// The statements of an asm string; nothing if it has labels, declarations, or operands that are not read
/// here.
std::optional<std::vector<PtxStatement>> parsePtx(llvm::StringRef text);

/// True if this is the loop around mbarrier.try_wait.parity that MLIR writes: $0 the address, $1 the parity.
bool isWaitLoop(llvm::StringRef text);

}  // namespace normc::emulator
