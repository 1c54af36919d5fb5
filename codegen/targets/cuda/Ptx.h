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

/// Whether NVPTX knows the processor.
bool llvmKnows(llvm::StringRef arch);

/// Dialects and translations that kernels pass through.
void registerDialects(mlir::DialectRegistry&);

/// Memory accesses of a warp's threads before it come before those after it.
void syncWarp(mlir::OpBuilder&, mlir::Location);

/// Waits until the launch before has ended and its stores are seen; lets the next launch begin (sm_90).
void waitForLaunchBefore(mlir::OpBuilder&, mlir::Location);
void letNextLaunchBegin(mlir::OpBuilder&, mlir::Location);

/// The two halves of a meeting of a cluster's threads: what was written before the one is there after the other.
void arriveAtCluster(mlir::OpBuilder&, mlir::Location);
void waitForCluster(mlir::OpBuilder&, mlir::Location);

/// Where a variable in shared memory lies in another block of the cluster; `block` is an i32.
mlir::Value inSharedMemoryOf(mlir::OpBuilder&, mlir::Location, mlir::Value pointer, mlir::Value block);

/// Begins a copy of 4, 8 or 16 bytes from global to shared memory, of 16 past the first-level cache; the copies since the
/// last group become one; waits until at most `left` groups of this thread are under way.
void copyToShared(mlir::OpBuilder&, mlir::Location, mlir::Value to, mlir::Value from, int64_t bytes = 16);
void endCopies(mlir::OpBuilder&, mlir::Location);
void waitForCopies(mlir::OpBuilder&, mlir::Location, int64_t left);

/// Of an mbarrier in shared memory, at which one thread arrives: its beginning, seen by copies, too; that thread's arrival,
/// with how many bytes (i32) copies are to bring; a wait until both have come, the phase's parity an i32.
void initMbarrier(mlir::OpBuilder&, mlir::Location, mlir::Value mbarrier);
void expectBytes(mlir::OpBuilder&, mlir::Location, mlir::Value mbarrier, mlir::Value bytes);
void waitForMbarrier(mlir::OpBuilder&, mlir::Location, mlir::Value mbarrier, mlir::Value parity);
/// Begins a copy of a multiple of 16 bytes (i32) from global to shared memory that the mbarrier is told of (sm_90).
void copyInBulk(mlir::OpBuilder&, mlir::Location, mlir::Value to, mlir::Value from, mlir::Value mbarrier, mlir::Value bytes);

/// Of a kernel function: the least blocks on a multiprocessor that its registers leave room for.
llvm::StringRef minBlocksAttrName();

/// Replaces what the passes would turn into calls of CUDA's device library: roots
/// and fused products, which the hardware rounds correctly by itself.
void useIntrinsics(mlir::Operation* gpuModule);

/// The passes from loops over threads to the LLVM and NVVM dialects, as one pipeline text.
llvm::StringRef gpuToLlvmPipeline();

/// The IR that NVPTX is given: of the `gpu.module`, optimised for the architecture.
llvm::Expected<std::unique_ptr<llvm::Module>> optimizedLlvm(mlir::Operation* gpuModule, const Arch&, llvm::LLVMContext&);

llvm::Expected<std::string> ptx(llvm::Module&, const Arch&);

}  // namespace normc::codegen::cuda
