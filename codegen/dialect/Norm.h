// The norm dialect in C++: the generated classes.
#pragma once

#include "codegen/dialect/NormDialect.h.inc"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/abi/Operands.h"
#define GET_ATTRDEF_CLASSES
#include "codegen/dialect/NormAttrs.h.inc"
#define GET_OP_CLASSES
#include "codegen/dialect/NormOps.h.inc"
