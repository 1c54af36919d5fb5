// Narrow elements that several sweeps read. LLVM widens each once, and a thread keeps the wide ones in twice
// as many registers. They are widened again instead, where they are used after other threads were waited for:
// that is one instruction an element, and leaves registers for more rows on the multiprocessor.
#pragma once

namespace llvm {
class Module;
}

namespace normc::codegen::cuda {

/// Gives uses of a widened vector behind a convergent call (a shuffle, a barrier) a widening of their own.
/// After all optimisations: they would join the two again.
void widenAgain(llvm::Module&);

}  // namespace normc::codegen::cuda
