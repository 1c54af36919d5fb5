/** @file
 * normc runtime: the C API.
 *
 * Compiled normalization layers, served to any host. Four objects, made in this order:
 *
 * @code{.unparsed}
 *   context   what the host provides: threads, a log sink
 *   package   one .npk file: kernels, and a manifest that says everything about them
 *   plan      one problem ("power_norm:backward@f32[*x1024]") bound to the best kernel for a processor or GPU
 *   execute   a plan applied to tensors
 * @endcode
 *
 * Conventions, true of every function below:
 *   - It returns a normc_status. After anything but NORMC_OK, normc_last_error() gives one sentence for
 *     the calling thread: what is wrong, with which value, by which rule; outputs are untouched.
 *   - Public structs begin with `struct_size`, which the caller sets to sizeof the struct, and are otherwise
 *     zero-initialised: `normc_args args = {0}; args.struct_size = sizeof args;` (`= {}` in C++). Zero means
 *     "default" or "absent" in every field. A program built with an older or newer header than the library's
 *     works, as long as it sets no field that the library does not know.
 *   - Objects live as long as anything made from them needs them, so they may be destroyed in any order. What
 * has been enqueued on a CUDA stream is none of them: its plan and state are destroyed after it has ended,
 * and after the last replay of a graph that captured it. Destroying NULL does nothing. A string that a
 * function returns belongs to the object it came from.
 *   - Plans and packages are immutable: any number of threads may use one at the same time.
 *   - A child made by fork may go on executing plans for the CPU, on the caller's thread alone. It makes
 * plans of its own only if no thread of the parent was making one, or loading any library, at the moment of
 * the fork. Of CUDA it can use nothing once the parent has: no driver survives a fork.
 *   - No function throws, exits or prints; no environment variable changes a result.
 *   - All sizes are 64-bit. Text is UTF-8.
 *
 * docs/c-api.md explains the API with examples.
 */
#ifndef NORMC_H
#define NORMC_H

#include <stddef.h>
#include <stdint.h>

#include "dlpack_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @cond */
#if defined(__GNUC__)
#define NORMC_API __attribute__((visibility("default")))
#else
#define NORMC_API
#endif
/** @endcond */

#define NORMC_VERSION_MAJOR 0 /**< of this header; another number is another ABI */
#define NORMC_VERSION_MINOR 1 /**< of this header */
#define NORMC_VERSION_PATCH 0 /**< of this header */

/* ---------------------------------------------------------------- status -- */

/** The numbers are those of absl::StatusCode. */
typedef enum normc_status {
  NORMC_OK = 0,
  NORMC_INVALID_ARGUMENT = 3,    /**< the call itself is wrong, whatever the state of the world */
  NORMC_NOT_FOUND = 5,           /**< no such file, problem, field or number */
  NORMC_RESOURCE_EXHAUSTED = 8,  /**< out of memory or file descriptors */
  NORMC_FAILED_PRECONDITION = 9, /**< right in itself, not for this plan, processor or library version */
  NORMC_ABORTED = 10,      /**< the host's parallel_for, or a CUDA launch, gave up: outputs are undefined */
  NORMC_OUT_OF_RANGE = 11, /**< an index past the end; how a loop over fields ends */
  NORMC_INTERNAL = 13,     /**< our mistake; please report it */
  NORMC_DATA_LOSS = 15     /**< a package that is truncated, altered or not a package */
} normc_status;

/** "INVALID_ARGUMENT" and so on; "UNKNOWN" for any other number. */
NORMC_API const char* normc_status_name(normc_status status);

/** The sentence that belongs to the last failure on this thread; "" before the first. Valid until the
 * next failure on this thread. */
NORMC_API const char* normc_last_error(void);

/** The version of the library, "0.1.0". */
NORMC_API const char* normc_version(void);

/** The newest instruction set of this processor and operating system that packages know: "x86-64-v4-bf16"
 * (with AVX512_BF16), "x86-64-v4", "x86-64-v3", "aarch64" (with the arithmetic in half precision of ARMv8.2),
 * or "none". */
NORMC_API const char* normc_cpu_isa(void);

/* --------------------------------------------------------------- context -- */

/** Services of the host. */
typedef struct normc_context normc_context;

/** One task of a parallel_for. */
typedef void (*normc_task)(void* data, int64_t index);

/** How a host lends its threads: calls task(data, i) exactly once for every i in [0, count), on any
 * threads and in any order, returns when all have returned, and returns 0. Running them one after another
 * on the caller's thread is right too. Any other return value makes execute return NORMC_ABORTED; it must
 * not throw. Tasks never wait for each other, and results do not depend on how many run at once. */
typedef int (*normc_parallel_for)(void* ctx, int64_t count, normc_task task, void* data);

/** Takes one line of information, without a newline, on any thread. For people; the API never needs it. */
typedef void (*normc_log)(void* ctx, const char* line);

/** Services that a host may offer to a context; each may be absent. */
typedef struct normc_context_options {
  size_t struct_size;              /**< sizeof of this struct */
  normc_parallel_for parallel_for; /**< NULL: threads of our own, begun when first needed */
  void* parallel_for_ctx;          /**< first argument of `parallel_for` */
  normc_log log;                   /**< NULL: silence */
  void* log_ctx;                   /**< first argument of `log` */
  int32_t
      max_threads; /**< for each execute; 0: as many as the process may use; 1: the caller's thread alone */
  const char*
      cuda_library; /**< the CUDA driver; NULL: "libcuda.so.1". Opened when a device is first wanted */
} normc_context_options;

/** Makes a context. `options` may be NULL. */
NORMC_API normc_status normc_context_create(const normc_context_options* options, normc_context** context);
/** Destroys a context; NULL does nothing. */
NORMC_API void normc_context_destroy(normc_context* context);

/** The CUDA devices. Fails where there is no driver or no device, and says what is missing. */
NORMC_API normc_status normc_cuda_device_count(normc_context* context, int32_t* count);

/** Facts about one, as the driver gives them; 0 where it does not know. */
typedef struct normc_cuda_device {
  size_t struct_size;                 /**< sizeof of this struct */
  char name[256];                     /**< zero-terminated */
  int32_t compute_major,              /**< of the compute capability: 9 of sm_90 */
      compute_minor;                  /**< 0 of sm_90 */
  int32_t driver_version;             /**< the newest CUDA it is for; 12080 is 12.8 */
  int32_t multiprocessors;            /**< how many there are */
  int32_t threads_per_multiprocessor, /**< the most that run at once */
      registers_per_multiprocessor;   /**< of 32 bits */
  int32_t clock_khz,                  /**< of the multiprocessors */
      memory_clock_khz,               /**< of the memory */
      memory_bus_bits;                /**< width of the memory bus */
  int32_t reserved;                   /**< 0 */
  int64_t memory_bytes,               /**< of the device */
      l2_bytes;                       /**< second-level cache */
  int64_t shared_per_multiprocessor;  /**< bytes of shared memory */
  int64_t shared_per_block;           /**< the most that a kernel can ask for */
} normc_cuda_device;

/** Device `index` of those counted, 0 to count - 1. */
NORMC_API normc_status normc_cuda_device_info(normc_context* context, int32_t index,
                                              normc_cuda_device* device);

/* --------------------------------------------------------------- package -- */

/** An open package. */
typedef struct normc_package normc_package;

/** Opens a package and checks its form, its sizes and the hash of its manifest; the hash of a blob of code is
 * checked when a plan first needs it. The file stays open, so it may be replaced (renamed over) meanwhile.
 * Opening a package means trusting its author: it holds machine code. */
NORMC_API normc_status normc_package_open(normc_context* context, const char* path, normc_package** package);

/** The same for a package in memory, which is copied. */
NORMC_API normc_status normc_package_open_memory(normc_context* context, const void* data, size_t bytes,
                                                 normc_package** package);
/** Destroys a package; NULL does nothing. */
NORMC_API void normc_package_destroy(normc_package* package);

/** The manifest, as JSON (docs/package-format.md); zero-terminated. */
NORMC_API normc_status normc_package_manifest(const normc_package* package, const char** json);

/** Checks the hash of every blob, as plan creation would. */
NORMC_API normc_status normc_package_verify(const normc_package* package);

/* ------------------------------------------------------------------ plan -- */

/** A problem bound to kernels. */
typedef struct normc_plan normc_plan;

/** Treatment of denormal numbers by CPU kernels. */
typedef enum normc_denormals {
  NORMC_DENORMALS_FLUSH =
      0, /**< as zero, in the kernels only: the host's mode is restored. CUDA kernels keep them */
  NORMC_DENORMALS_KEEP = 1 /**< computed with as they are */
} normc_denormals;

/** When outputs as large as x are read again. Large ones go past the caches where that pays, from the
 * `stream_bytes` of the kernel on; the host knows better. Changes no result. Kernels without that number,
 * CUDA's among them, ignore it. */
typedef enum normc_output_reuse {
  NORMC_OUTPUT_REUSE_UNKNOWN = 0, /**< decided by size */
  NORMC_OUTPUT_REUSE_SOON = 1,    /**< by the next operation: they stay in the caches */
  NORMC_OUTPUT_REUSE_LATE = 2     /**< not before the caches hold something else */
} normc_output_reuse;

/** The value of one number of the spec: "epsilon", "decay", "warmup_steps", ... */
typedef struct normc_number {
  const char* name; /**< as the spec calls it */
  double value;     /**< in place of the default */
} normc_number;

/** The request that a plan is made for. */
typedef struct normc_request {
  size_t struct_size; /**< sizeof of this struct */
  /** The computation: the canonical text of a problem.
   * @code{.unparsed}
   *   NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}, e.g.
   *   layer_norm:forward@f32[*x1024]           rows x features
   *   instance_norm:infer@bf16[*x*x64]         segments x rows x features
   *   batch_norm:backward@f16[*x64x*]{layout=channels_first}   segments x features x rows
   *   power_norm_released:forward@f32[*x1024]{heads=16,mask,params=bf16}
   * @endcode
   * A size is a number, or * for any. A kernel for any number of features serves a given one too. A number
   * that the groups of a norm do not divide is refused: here, or where a plan for any number first learns it.
   */
  const char* problem;
  const char* isa_cap; /**< no newer instruction set than this, e.g. "x86-64-v3" or "sm_80"; NULL: no cap */
  normc_denormals denormals;   /**< ignored by CUDA plans */
  int32_t max_threads;         /**< 0: what the context says; never more than that */
  const normc_number* numbers; /**< values that replace the defaults of the spec */
  size_t number_count;         /**< of `numbers` */
  /** Where to run, in DLPack's numbers: kDLCPU (or 0), or kDLCUDA with the number of the device. A CUDA plan
   * knows neither threads nor denormals: its kernels keep those, whatever `denormals` says. */
  int32_t device_type;
  int32_t device_id; /**< which of the devices of that type */
  /** 1: warmup is over for good, so its phases are left out. On the CPU execute refuses a call whose step
   * says otherwise; on CUDA the step lies on the device, and only the caller knows. */
  int32_t steady;
  int32_t output_reuse; /**< a normc_output_reuse */
  /** 1: calls run one kernel, whatever sizes they have that `problem` leaves open. 0: where the package has a
   * better one for few rows, say, calls of few rows run that. */
  int32_t one_kernel;
  int32_t reserved; /**< 0 */
} normc_request;

/** Chooses a kernel, loads its code, checks everything that does not depend on a call. Never measures.
 * A CUDA plan belongs to the context that is current on this thread, if it is one of that device, and else to
 * the device's primary context. A context that is not primary outlives its plans and states. */
NORMC_API normc_status normc_plan_create(const normc_package* package, const normc_request* request,
                                         normc_plan** plan);
/** Destroys a plan; NULL does nothing. */
NORMC_API void normc_plan_destroy(normc_plan* plan);

/** For people: the kernels, why they were chosen, which others were rejected and why, threads, numbers. */
NORMC_API normc_status normc_plan_describe(const normc_plan* plan, const char** text);

/** The value of one number of the kernel that serves any call of the plan, by its name in the manifest: those
 * of the spec, as the request set them, and those that say from which size on a kernel takes a call for one
 * that caches do not hold. NORMC_NOT_FOUND where the kernel has no such number. */
NORMC_API normc_status normc_plan_number(const normc_plan* plan, const char* name, double* value);

/** The sizes of one call. */
typedef struct normc_sizes {
  size_t struct_size; /**< sizeof of this struct */
  int64_t segments;   /**< for problems with three dimensions; others ignore it */
  int64_t rows;       /**< of one segment */
  int64_t features;   /**< 0: those of the plan's problem, if it gives them */
} normc_sizes;

/** The kernel that calls of these sizes run, as an index into "kernels" of the manifest; `sizes` NULL: the
 * one that serves any call of the problem. */
NORMC_API normc_status normc_plan_kernel(const normc_plan* plan, const normc_sizes* sizes, size_t* index);

/** The type of a field. */
typedef enum normc_type {
  NORMC_F32 = 0, /**< float */
  NORMC_F64 = 1, /**< double */
  NORMC_I64 = 2  /**< int64_t */
} normc_type;

/** The most dimensions of a field. */
#define NORMC_MAX_FIELD_DIMS 4

/** One array inside the state, or inside the saved statistics. */
typedef struct normc_field {
  size_t struct_size;                  /**< sizeof of this struct */
  const char* name;                    /**< "psi2", "nu", "running_mean", "rstd", ... */
  normc_type type;                     /**< of each element */
  int32_t ndim;                        /**< 0: a single number */
  int64_t shape[NORMC_MAX_FIELD_DIMS]; /**< `ndim` sizes */
  size_t offset;                       /**< in bytes from the start of the buffer; a multiple of 64 */
  size_t bytes;                        /**< of all elements */
  double init;                         /**< of a fresh state; 0 for saved statistics */
} normc_field;

/** State: what a norm remembers from step to step. A flat buffer of the caller's, so it can be saved, copied,
 * checkpointed and sent around like any other array. 0 bytes and no fields for norms without state. */
NORMC_API normc_status normc_plan_state_bytes(const normc_plan* plan, const normc_sizes* sizes,
                                              size_t* bytes);
/** Field `index` of the state; NORMC_OUT_OF_RANGE past the last. */
NORMC_API normc_status normc_plan_state_field(const normc_plan* plan, const normc_sizes* sizes, size_t index,
                                              normc_field* field);
/** Writes a fresh state. `bytes` is what normc_plan_state_bytes says. For a CUDA plan `memory` is the
 * device's; the copy has happened on return, and is not ordered with the caller's streams. */
NORMC_API normc_status normc_plan_state_init(const normc_plan* plan, const normc_sizes* sizes, void* memory,
                                             size_t bytes);

/** Saved statistics: what forward hands to its backward. Forward and backward plans of one norm, dtype and
 * shape agree on them, whatever kernels they chose; infer saves nothing, 0 bytes and no fields. */
NORMC_API normc_status normc_plan_saved_bytes(const normc_plan* plan, const normc_sizes* sizes,
                                              size_t* bytes);
/** Field `index` of the saved statistics; NORMC_OUT_OF_RANGE past the last. */
NORMC_API normc_status normc_plan_saved_field(const normc_plan* plan, const normc_sizes* sizes, size_t index,
                                              normc_field* field);

/** Scratch that is enough for every call of these sizes, or of fewer segments or rows: ask once, for the most
 * that there will be. Any alignment will do; nothing is kept in it between calls; calls that run at the same
 * time need one each. Most calls need less, and say how much if they get too little. */
NORMC_API normc_status normc_plan_workspace_bytes(const normc_plan* plan, const normc_sizes* sizes,
                                                  size_t* bytes);

/* --------------------------------------------------------------- execute -- */

/** A state whose memory belongs to the library. */
typedef struct normc_state normc_state;

/** The arguments of one call. Which ones a plan takes follows from its problem:
 *
 * @code{.unparsed}
 *              reads                                 writes (what may be NULL, in brackets)
 *   forward    x, scale, bias, mask, state_in        y, [saved], [state_out]
 *   backward   x, dy, scale, mask, state_in, saved   [dx], [dscale], [dbias], [state_out]
 *   infer      x, scale, bias, mask, state_in        y
 * @endcode
 *
 * as far as the norm has them. What is NULL is not computed; with state_out NULL the state does not change.
 * Where activations are recomputed, that is the first pass: the second, which updates, has to see the state
 * of before the step as well. Backward ignores inputs that it does not need; any other argument
 * that the plan does not take is refused, since it would silently have no effect.
 *
 * Tensors. x, y, dy, dx have one shape: rows x features, or what the problem says. Rows may come as several
 * dimensions if they can be walked with one stride: batch x time x features for a problem of two dimensions,
 * N x C x H x W for channels_first. The contiguous axis (features, or rows for channels_first) has stride 1;
 * the others any stride, in inputs even 0 or negative; strides of a tensor without elements mean nothing.
 * scale, bias, dscale, dbias: features, contiguous.
 * mask: the shape of x without features, 8-bit unsigned or bool, 1 for a real row and 0 for padding.
 *
 * Memory. y may be x, and dx may be dy, with the same strides; state_out may be state_in. Any other overlap
 * of something written with anything else is refused. state and saved are aligned to 8 bytes. */
typedef struct normc_args {
  size_t struct_size;     /**< sizeof of this struct */
  const DLTensor* x;      /**< input of forward, infer and backward */
  const DLTensor* y;      /**< output of forward and infer */
  const DLTensor* dy;     /**< gradient of y: input of backward */
  const DLTensor* dx;     /**< gradient of x: output of backward */
  const DLTensor* scale;  /**< parameter, one for each feature */
  const DLTensor* bias;   /**< parameter, one for each feature */
  const DLTensor* dscale; /**< gradient of scale: output of backward */
  const DLTensor* dbias;  /**< gradient of bias: output of backward */
  const DLTensor* mask;   /**< 1 for a real row, 0 for padding */
  const void* state_in;   /**< the state before the call */
  size_t state_in_bytes;  /**< exactly normc_plan_state_bytes */
  void* state_out;        /**< the state after the call */
  size_t state_out_bytes; /**< as `state_in_bytes` */
  void* saved;            /**< forward writes it, backward reads it */
  size_t saved_bytes;     /**< exactly normc_plan_saved_bytes */
  void* workspace;        /**< scratch memory */
  size_t workspace_bytes; /**< at least what the call needs: normc_plan_workspace_bytes */
  normc_state* state; /**< instead of state_in and state_out: read by all, written by forward and backward */
  void* stream;       /**< NULL on a CPU; on CUDA a CUstream or cudaStream_t, NULL the default stream */
} normc_args;

/** Runs the plan. On a CPU it returns when all outputs are written. Allocates nothing, takes no lock, does no
 * I/O, and leaves the floating-point mode as it was. The caller orders calls on one state.
 * Results are bitwise the same for any number of threads.
 *
 * On CUDA tensors, state, saved and workspace are memory of the plan's device, and execute only enqueues on
 * `stream`: copies within the device, and launches. It allocates nothing, waits for nothing and reads
 * nothing back, so it may be called while the stream is being captured into a graph; a replay reads step,
 * state and tensors at the addresses of the captured call. While it runs nobody else enqueues on the stream.
 * The context of the calling thread is restored. A kernel that fails on the device is seen by whoever waits
 * for the stream, and by later calls. */
NORMC_API normc_status normc_execute(const normc_plan* plan, const normc_args* args);

/* ---------------------------------------------------------- state object -- */

/** Sugar for hosts that do not want to own the state's memory: the buffer, and what is needed to refuse it
 * where it does not belong. Made from any plan of a norm, used with all plans of that norm, dtype and number
 * of features, on the same device and in the same CUDA context (a green context is one of its own: there,
 * give the buffer as state_in and state_out).
 *
 * The buffer of a CUDA plan's state is the device's. The functions below then copy on the default stream and
 * wait for it; whoever uses the state on other streams waits for those first. They are not for a capture, but
 * normc_state_destroy may be called during one, as normc_plan_create and normc_plan_destroy may. */
NORMC_API normc_status normc_state_create(const normc_plan* plan, int64_t features, normc_state** state);
/** Destroys a state; NULL does nothing. */
NORMC_API void normc_state_destroy(normc_state* state);

/** Back to a fresh state. */
NORMC_API normc_status normc_state_init(normc_state* state);

/** The buffer itself, e.g. to save it; 64-byte aligned. */
NORMC_API normc_status normc_state_data(normc_state* state, void** data, size_t* bytes);

/** Field `index` of the state; NORMC_OUT_OF_RANGE past the last. */
NORMC_API normc_status normc_state_field(const normc_state* state, size_t index, normc_field* field);

/** Copies one field out, by name; `bytes` must be the field's. */
NORMC_API normc_status normc_state_get(const normc_state* state, const char* field, void* data, size_t bytes);
/** Copies one field in, by name; `bytes` must be the field's. */
NORMC_API normc_status normc_state_set(normc_state* state, const char* field, const void* data, size_t bytes);

/** Copies a state. Both must be states of the same norm, dtype and number of features; they may lie on
 * different devices. */
NORMC_API normc_status normc_state_copy(normc_state* to, const normc_state* from);

#ifdef __cplusplus
}
#endif
#endif /* NORMC_H */
