// From a GPU module to PTX: the passes, LLVM's optimiser, NVPTX.
#pragma once

#include <memory>
#include <string>

#include "codegen/targets/cuda/Arch.h"
#include "mlir/IR/DialectRegistry.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm
namespace mlir {
class Location;
class OpBuilder;
class Operation;
class Value;
}  // namespace mlir

namespace normc::codegen::cuda {

/// True if NVPTX knows the processor.
bool llvmKnows(llvm::StringRef arch);

/// Registers the dialects and translations that kernels pass through.
void registerDialects(mlir::DialectRegistry&);

/// Orders the memory accesses of a warp's threads before it before those after it.
void syncWarp(mlir::OpBuilder&, mlir::Location);

/// Waits until the launch before has ended and its stores are visible; lets the next launch begin (sm_90).
void waitForLaunchBefore(mlir::OpBuilder&, mlir::Location);
void letNextLaunchBegin(mlir::OpBuilder&, mlir::Location);

/// The two halves of a cluster barrier: writes before the first are visible after the second.
void arriveAtCluster(mlir::OpBuilder&, mlir::Location);
void waitForCluster(mlir::OpBuilder&, mlir::Location);

/// Returns the address of a variable in the shared memory of another block of the cluster; `block` is an i32.
mlir::Value inSharedMemoryOf(mlir::OpBuilder&, mlir::Location, mlir::Value pointer, mlir::Value block);

/// Begins a copy of 4, 8 or 16 bytes from global to shared memory, of 16 without the first-level cache; makes
/// a group of the copies since the last group; waits until at most `left` groups of this thread are in
/// flight.
void copyToShared(mlir::OpBuilder&, mlir::Location, mlir::Value to, mlir::Value from, int64_t bytes = 16);
void endCopies(mlir::OpBuilder&, mlir::Location);
void waitForCopies(mlir::OpBuilder&, mlir::Location, int64_t left);

/// Initialises an mbarrier in shared memory for the arrival of one thread, visible to copies, too; arrives,
/// and announces how many bytes (i32) copies will bring; waits until the arrival and the bytes have come,
/// with the parity of the phase (i32).
void initMbarrier(mlir::OpBuilder&, mlir::Location, mlir::Value mbarrier);
void expectBytes(mlir::OpBuilder&, mlir::Location, mlir::Value mbarrier, mlir::Value bytes);
void waitForMbarrier(mlir::OpBuilder&, mlir::Location, mlir::Value mbarrier, mlir::Value parity);
/// Begins a store of 1, 2 or 4 floats, of at most 16 bytes, side by side in the shared memory of another
/// block, whose mbarrier counts their bytes (sm_90). The addresses are those of inSharedMemoryOf.
void storeAsync(mlir::OpBuilder&, mlir::Location, mlir::ValueRange floats, mlir::Value to,
                mlir::Value mbarrier);
/// Begins a copy of a multiple of 16 bytes (i32) from global to shared memory that the mbarrier counts
/// (sm_90).
void copyInBulk(mlir::OpBuilder&, mlir::Location, mlir::Value to, mlir::Value from, mlir::Value mbarrier,
                mlir::Value bytes);

/// Returns the attribute of a kernel function that says how many blocks a multiprocessor must have registers
/// for.
llvm::StringRef minBlocksAttrName();

/// Returns the passes of MLIR from loops over threads to the LLVM and NVVM dialects, as one pipeline text.
llvm::StringRef gpuToLlvmPipeline();

/// Returns the IR that NVPTX gets: the `gpu.module`, optimised for the architecture.
llvm::Expected<std::unique_ptr<llvm::Module>> optimizedLlvm(mlir::Operation* gpuModule, const Arch&,
                                                            llvm::LLVMContext&);

llvm::Expected<std::string> ptx(llvm::Module&, const Arch&);

}  // namespace normc::codegen::cuda
