// A compiled program: the result of Program::compile and the input of Program::run.
#pragma once

#include <map>

#include "codegen/emulator/Emulator.h"
#include "codegen/emulator/Site.h"
#include "codegen/emulator/Stacks.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

namespace normc::emulator {

/// A variable of the module in global or constant memory.
struct Variable {
  std::string name;
  uint64_t bytes = 0;
  bool constant = false;
  std::byte* address = nullptr;
};

struct Program::State {
  std::vector<Site> sites;
  std::vector<Entry> entries;
  std::vector<Variable> variables;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  mutable StackPool stacks;

  const Entry* find(const std::string& function) const;
};

}  // namespace normc::emulator
