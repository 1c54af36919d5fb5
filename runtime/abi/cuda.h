/* How the runtime launches a CUDA kernel: the contract of generated code and the
 * runtime, as kernel.h is for a CPU.
 *
 * A kernel is a list of phases, each an entry function of its module, launched one
 * after another on the caller's stream. A phase is cut into tasks by the same rule
 * as on a CPU (docs/package-format.md), from sizes and manifest alone, so results
 * do not depend on the device. The phase's `launch` in the manifest gives
 *
 *   grid   x = max(chunks, least) * cluster * cooperative, y = columns ? ceil(features / columns) : 1, z = 1
 *   block  x = threads
 *   shared dynamic shared memory in bytes
 *
 * A grid of no blocks is not launched. A chunk beyond the phase's own has no units.
 *
 * Dependent phases (compute capability 9.0 and newer). A phase with `dependent` begins
 * with griddepcontrol.wait in every thread and touches no memory of the call before it.
 * It may be launched with the attribute of programmatic stream serialization, and is,
 * straight after another phase of the same call; without it the wait does nothing. The
 * first launch of a call never has the attribute, because the work before it is not ours. A
 * phase may issue griddepcontrol.launch_dependents after its own wait, so a wait
 * covers all phases before, not the last alone.
 *
 * Cooperative phases. With `cooperative` above 1 the launch has the attribute of a cooperative
 * one, and the blocks of chunk c are blocks c * cooperative to (c + 1) * cooperative - 1 along x:
 * they wait for each other through workspace. Operands with the access `zeroed` are all
 * zero when the first phase of the call begins.
 *
 * Parameters. Every parameter is one 8-byte word; all phases of a kernel have the
 * same ones, so they are laid out once a call:
 *
 *   data pointer                 for each operand, in the manifest's order
 *   segment_stride, row_stride   for each X-sized operand, the mask and each field of partials, in the same
 * order: two words each, in elements, with the meaning of normc_operand (0 of what is left out; row_stride of
 * a mask) segments, rows, features     int64 scalar                       double, for each scalar of the
 * manifest units, chunk_units, chunks   int64, for each phase
 *
 * An X-sized output that the caller leaves out is null and not stored. Any other
 * output that is left out has scratch, as on a CPU. An X-sized input that is left out
 * is a row of zeros, as on a CPU: the runtime clears it on the stream, before the first phase.
 *
 * Alignment. `symbol` of a phase may use accesses of the kernel's `alignment` in
 * bytes. It is launched if every X-sized operand, every vector of features, the state
 * and the saved statistics begin at a multiple of it, every stride of an X-sized operand
 * is one in bytes (of an axis longer than 1), and so is the length of the contiguous axis in
 * the widest X-sized elements, and that of a vector of which several segments have one each. An X-sized
 * operand with narrower elements has to begin, and to go on, at a multiple of as many elements. A null
 * pointer is aligned; so is scratch, to 64 bytes; a mask may begin anywhere. Else `unaligned` is
 * launched, which requires the alignment of an element only, and of 8 bytes for state
 * and saved statistics. A field of a partial may begin at any multiple of 8 bytes in both.
 */
#ifndef NORMC_ABI_CUDA_H
#define NORMC_ABI_CUDA_H

/* Bytes of one parameter. */
#define NORMC_CUDA_WORD 8

#endif
