// The text of a PTX module, taken apart: variables, entries, instructions with their operands.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace normc::emulator::ptx {

/// `b32`, `s64`, `bf16x2`, `pred`: what an instruction takes its operands for.
struct Type {
  enum Kind : char { Bits, Unsigned, Signed, Float, Brain, Predicate } kind = Bits;
  unsigned bits = 0;  ///< of one lane
  unsigned lanes = 1;
  unsigned width() const { return bits * lanes; }
  bool isFloat() const { return kind == Float || kind == Brain; }
};

/// Returns the type that the word names, or nothing.
std::optional<Type> typeOf(llvm::StringRef word);

/// `%r3`, `!%p1`, `16`, `0f3F800000`, `%tid.x`, `name`, `[%rd1+16]`, `{%r0, %r1}`, `%r1|%p2`, `_`.
struct Operand {
  enum Kind { Register, Number, Special, Symbol, Address, List, Pair, Sink } kind = Sink;
  uint32_t index = 0;  ///< a register, in Function::registers; of an address, if `name` is empty
  bool negated = false;
  std::string name;        ///< of a special register or a symbol; of an address, its symbol
  int64_t number = 0;      ///< a number, by its bits, or the offset of an address
  unsigned floatBits = 0;  ///< of a number that is written as a float
  std::vector<Operand> elements;
};

struct Statement {
  std::string text;                ///< without its guard's blanks and the semicolon
  unsigned line = 0;               ///< in the module
  std::vector<std::string> words;  ///< `ld`, `global`, `nc`, `v4`, `b32`
  std::vector<Type> types;         ///< those among the words
  std::vector<Operand> operands;
  std::optional<uint32_t> guard;  ///< the register of its predicate
  bool guardNegated = false;
  std::optional<uint32_t> label;   ///< a label, and nothing else
  std::optional<uint32_t> target;  ///< the label that it branches to

  bool is(std::initializer_list<llvm::StringRef> first) const;  ///< true if `words` begins with `first`
  bool has(llvm::StringRef word) const;
};

struct Register {
  std::string name;
  unsigned bits;  ///< 1 for a predicate
};

/// A variable of the module or of an entry.
struct Variable {
  std::string name;
  uint8_t space = 0;  ///< a Space
  uint64_t align = 1, bytes = 0;
  bool isExternal = false;
  std::vector<uint8_t> initial;
};

struct Function {
  std::string name;
  std::vector<std::string> parameters;                              ///< each of 8 bytes
  std::array<uint32_t, 3> maxThreads{}, exactThreads{}, cluster{};  ///< zero: not given
  std::vector<Register> registers;
  std::vector<Variable> variables;
  std::vector<std::string> labels;
  std::vector<Statement> statements;
};

struct Module {
  uint32_t architecture = 0;  ///< 90 for sm_90
  std::vector<Variable> variables;
  std::vector<Function> entries;
};

/// An error names the line and what was not expected there.
llvm::Expected<Module> parse(llvm::StringRef text);

}  // namespace normc::emulator::ptx
