/* A CUDA driver without a device: its control functions, for tests and for an emulator in the same process.
 *
 * libnormc_fake_cuda.so exports the cu* functions that the runtime and the benchmarks call, with the
 * driver's rules that affect them: handles must be alive, device memory is in a registry, a stream belongs
 * to a context, a call that is illegal under capture is refused. It is opened instead of libcuda.so.1; the
 * functions below are additional.
 *
 *   devices    any number, of any compute capability
 *   memory     of the host, 256-byte aligned, each allocation between red zones and full of 0xff: NaN
 *   streams    execute work at once, in the order of the calls; under capture they record it
 *   kernels    run by the launcher, if there is one; otherwise they are only recorded
 *   calls      recorded by name, launches with all their words
 *   faults     any function fails at its n-th call, once or from then on with every other
 *
 * There is one such driver in a process, as there is one libcuda. All functions may be called from any
 * thread. A CUresult is an int here, with the numbers of runtime/abi/CudaDriver.h.
 */
#ifndef NORMC_FAKE_CUDA_H
#define NORMC_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Forgets all calls, faults, allocations and objects, ends the launcher, and starts again with one device
 * sm_90 and driver version 13000, which reads PTX up to 9.0. Handles from before are refused as invalid from
 * now on. */
void fake_cuda_reset(void);

/* --------------------------------------------------------------- devices -- */

typedef struct fake_cuda_device {
  int major, minor;    /* compute capability */
  int multiprocessors; /* 0: 132 */
  size_t memory_bytes; /* 0: 1 GiB; allocating more fails with CUDA_ERROR_OUT_OF_MEMORY */
} fake_cuda_device;

/* To be called before cuInit, or after fake_cuda_reset. */
void fake_cuda_set_devices(int count, const fake_cuda_device* devices);
void fake_cuda_set_driver_version(int version); /* 12080 is 12.8 */

/* ---------------------------------------------------------------- memory -- */

typedef struct fake_cuda_allocation {
  uint64_t begin, end; /* addresses; of the host as well */
  int device;
  uint64_t serial; /* counts allocations: the same address later has another */
} fake_cuda_allocation;

/* The live allocation that holds `address`, or whose red zone does; returns 0 if there is none. */
int fake_cuda_allocation_of(uint64_t address, fake_cuda_allocation* allocation);

/* Live allocations, and how many of them, or of those freed so far, have a damaged red zone. */
size_t fake_cuda_live_allocations(void);
size_t fake_cuda_damaged_allocations(void);

/* Removes and gives the oldest range that cuMemset* has filled with zeros and with nothing else since;
 * returns 0 if there is none. */
int fake_cuda_take_cleared(uint64_t* begin, uint64_t* end);

/* Returns the number of live objects: modules, streams, events, graphs, contexts, primary ones too. */
size_t fake_cuda_live_objects(void);

/* -------------------------------------------------------------- launches -- */

/* One launch. Pointers are valid until the launcher returns; those of fake_cuda_launch_at until the next
 * call that changes the record. */
typedef struct fake_cuda_launch {
  const char* function; /* the entry's name */
  const void* image;    /* the module as it was loaded: PTX text, zero-terminated, or a cubin */
  size_t image_bytes;   /* without that zero */
  unsigned grid[3], block[3], cluster[3];
  unsigned shared_bytes;  /* dynamic */
  const void* parameters; /* as the kernel would see them: one after another, naturally aligned */
  size_t parameter_bytes; /* 8 times the words, for a kernel of runtime/abi/cuda.h */
  int device;
  const void* stream; /* the handle, NULL for the default stream */
  int cooperative;    /* all blocks are resident at once */
  int dependent;      /* may begin before the stream's last launch has ended, and waits for it itself */
} fake_cuda_launch;

/* Runs one launch to its end and returns a CUresult. Anything but 0 becomes a sticky error of the launch's
 * context, as a kernel that fails does: the launch itself succeeds, every later call there returns the error.
 * Never called twice at once. It must not call cu* functions; fake_cuda_* functions it may. */
typedef int (*fake_cuda_launcher)(void* user, const fake_cuda_launch* launch);

/* NULL: launches are recorded only. */
void fake_cuda_set_launcher(fake_cuda_launcher launcher, void* user);

/* ---------------------------------------------------------------- record -- */

/* On by default. Off, calls are not kept, and the launches and queries of execute return at once, unchecked
 * and without effect: for measurements of the host's time. */
void fake_cuda_set_recording(int on);

size_t fake_cuda_call_count(const char* function); /* NULL: of all */
const char* fake_cuda_call_at(size_t index);       /* the function's name; NULL past the end */

size_t fake_cuda_launch_count(void);
int fake_cuda_launch_at(size_t index, fake_cuda_launch* launch); /* 0 past the end */

/* Clears only the record of calls and launches. */
void fake_cuda_clear_record(void);

/* ---------------------------------------------------------------- faults -- */

typedef enum fake_cuda_scope {
  FAKE_CUDA_ONCE = 0,  /* this call fails, the next succeeds */
  FAKE_CUDA_STICKY = 1 /* every later call of that device's contexts returns the same error too */
} fake_cuda_scope;

/* The `nth` call of `function` from now on (1: the next) does nothing and returns `result`. A JIT log
 * that goes with it may be set by fake_cuda_set_jit_log. */
void fake_cuda_fail(const char* function, int nth, int result, fake_cuda_scope scope);

/* What cuModuleLoadDataEx writes into the error log that it is given, whenever it fails. */
void fake_cuda_set_jit_log(const char* text);

/* cuFuncGetAttribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK); 1024 by default. */
void fake_cuda_set_max_threads_per_block(int threads);

/* The most blocks of a cluster that fit on the devices; 16 by default. */
void fake_cuda_set_largest_cluster(int blocks);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif /* NORMC_FAKE_CUDA_H */
