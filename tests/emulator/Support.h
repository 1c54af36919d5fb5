// Kernels from text, and launches in a line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/emulator/Emulator.h"
#include "llvm/IR/Module.h"

namespace normc::emulator {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The module of this IR, with the triple and the data layout of NVPTX. Ends the process where it is not
/// valid.
std::unique_ptr<llvm::Module> parseKernel(const std::string& ir, llvm::LLVMContext&);

/// Returns the PTX that NVPTX makes of the module for sm_90.
std::string ptxOf(llvm::Module&);

/// An entry `k` of PTX with these parameters, words that are called k_param_0 and so on, with registers %p0
/// to %p9, %rs, %r and %rd, and 8 bytes of local memory, `depot`. Its first instruction is in line 12.
std::string ptxEntry(const std::string& parameters, const std::string& instructions);
Program programOfPtx(const std::string& ptx);
/// Why it cannot be emulated; empty where it can.
std::string reasonAgainstPtx(const std::string& ptx);

/// The program of this IR; ends the process where it cannot be emulated.
Program programOf(const std::string& ir);
/// Why it cannot be emulated; empty where it can.
std::string reasonAgainst(const std::string& ir);

/// A launch of the kernel `k`, written as it is read: `run(ir, {.block = {32}}, memory, {x, y})`.
struct Shape {
  Dim3 grid, block, cluster;
  uint32_t sharedBytes = 0;
  bool cooperative = false;
  uint32_t mostShared = limits::sharedOfBlock(90);
};
Report run(const Program&, const Shape&, Memory&, const std::vector<const void*>& words, const Options& = {});
Report run(const std::string& ir, const Shape&, Memory&, const std::vector<const void*>& words,
           const Options& = {});
/// Why the launch is refused; empty where it is not.
std::string refusal(const Program&, const Shape&, Memory&, const std::vector<const void*>& words);

/// A number as a word of the parameters.
const void* word(uint64_t);
const void* word(double);

/// A region of `count` elements with 0, 1, 2, ...
template <typename T>
T* iota(Memory& memory, const std::string& name, size_t count, Access access = Access::ReadWrite) {
  auto* data = static_cast<T*>(memory.allocate(count * sizeof(T), name, access, Content::Initialised));
  for (size_t i = 0; i < count; ++i) data[i] = T(i);
  return data;
}

/// A region that has not been written.
template <typename T>
T* fresh(Memory& memory, const std::string& name, size_t count) {
  return static_cast<T*>(memory.allocate(count * sizeof(T), name));
}

}  // namespace normc::emulator
