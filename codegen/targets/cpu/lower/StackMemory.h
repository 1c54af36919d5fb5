// Memory on the stack of a phase function.
#pragma once

#include "codegen/lower/Loops.h"

namespace normc::codegen {

class StackMemory {
 public:
  StackMemory() = default;
  /// Emits the allocation of so many elements of a type. It stands where the builder is, which has to be
  /// outside of loops. `alignment` in bytes, 0: that of the type.
  StackMemory(Loops&, int64_t elements, mlir::Type element, int64_t alignment = 0);
  explicit operator bool() const { return bool(memory_); }

  mlir::Type element() const;
  mlir::Value address(Loops&) const;
  /// `lanes` 0: a scalar.
  mlir::Value load(Loops&, mlir::Value at, int64_t lanes = 0) const;
  /// Stores a scalar, or the lanes of a vector that the mask has; null: all.
  void store(Loops&, mlir::Value at, mlir::Value, mlir::Value mask = {}) const;

 private:
  mlir::Value memory_;
};

}  // namespace normc::codegen
