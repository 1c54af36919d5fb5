// Translates a PTX module into a module for this processor, whose functions call the emulator (Hooks.h).
#pragma once

#include "codegen/emulator/Program.h"
#include "codegen/emulator/ptx/Parse.h"
#include "llvm/IR/Module.h"

namespace normc::emulator::ptx {

/// Adds entries, sites and variables to the state, and to `ir` a function `emu.NAME(thread, words)` for each
/// entry. An error names the instructions that cannot be emulated.
llvm::Error translate(const Module&, llvm::Module& ir, Program::State&);

}  // namespace normc::emulator::ptx
