/** @file
 * normc runtime: the C API.
 *
 * It executes compiled normalization layers in any host. Four steps, in this order:
 *
 * @code{.unparsed}
 *   context   the services of the host: threads, a log sink
 *   package   one .npk file: kernels, and a manifest that describes them
 *   plan      one problem ("power_norm:backward@f32[*x1024]") bound to the best kernel for a processor or GPU
 *   execute   a plan applied to tensors
 * @endcode
 *
 * Conventions of every function below:
 *   - It returns a normc_status. After any status but NORMC_OK, normc_last_error() returns one sentence for
 *     the calling thread: what is wrong, with which value, by which rule. Outputs are untouched, except after
 *     NORMC_ABORTED, and after normc_execute_part with an `ith` out of range.
 *   - Public structs begin with `struct_size`, which the caller sets to sizeof the struct, and are otherwise
 *     zero-initialised: `normc_args args = {0}; args.struct_size = sizeof args;` (`= {}` in C++). Zero means
 *     "default" or "absent" in every field. A program built with an older or newer header than the library's
 *     works, as long as it sets no field that the library does not know.
 *   - An object lives as long as objects made from it need it, so objects may be destroyed in any order. This
 * does not hold for work on a CUDA stream: destroy its plan and state only after the work has ended, and
 * after the last replay of a graph that captured it. Destroying NULL does nothing. A string that a function
 * returns belongs to the object it came from, and is valid as long as the object.
 *   - Contexts, packages and plans are thread-safe: any number of threads may use one at the same time. A
 * state is not: its caller orders all uses of one.
 *   - A child made by fork may continue to execute plans for the CPU, on the caller's thread alone. It may
 * create plans only if no thread of the parent was creating one, or loading any library, at the moment of the
 * fork. It cannot use CUDA if the parent has used it: the driver does not support that.
 *   - No function throws, exits or prints. No environment variable changes a result.
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
#if defined(NORMC_API) /* while the static library is compiled */
#elif defined(__GNUC__)
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
  NORMC_INVALID_ARGUMENT = 3,    /**< the call itself is wrong */
  NORMC_NOT_FOUND = 5,           /**< no such file, problem, field or number */
  NORMC_RESOURCE_EXHAUSTED = 8,  /**< out of memory or file descriptors */
  NORMC_FAILED_PRECONDITION = 9, /**< valid, but not for this plan, processor or library version */
  NORMC_ABORTED = 10,      /**< the host's parallel_for, or a CUDA launch, failed: outputs are undefined */
  NORMC_OUT_OF_RANGE = 11, /**< an index past the end; ends a loop over fields */
  NORMC_INTERNAL = 13,     /**< a fault of normc; please report it */
  NORMC_DATA_LOSS = 15     /**< a package that is truncated, altered or not a package */
} normc_status;

/** Returns "INVALID_ARGUMENT" and so on; "UNKNOWN" for any other number. The string is static. */
NORMC_API const char* normc_status_name(normc_status status);

/** Returns the sentence about the last failure on this thread; "" before the first. Valid until the next
 * failure on this thread. */
NORMC_API const char* normc_last_error(void);

/** Returns the version of the library, "0.1.0". */
NORMC_API const char* normc_version(void);

/** Returns the newest instruction set that this processor and operating system support: "x86-64-v4-bf16"
 * (with AVX512_BF16), "x86-64-v4", "x86-64-v3", "aarch64" (with the arithmetic in half precision of ARMv8.2),
 * or "none". */
NORMC_API const char* normc_cpu_isa(void);

/* --------------------------------------------------------------- context -- */

/** Services of the host. */
typedef struct normc_context normc_context;

/** One task of a parallel_for. */
typedef void (*normc_task)(void* data, int64_t index);

/** A host's function that runs tasks on its threads. It calls task(data, i) exactly once for every i in
 * [0, count), on any threads and in any order, returns after all have returned, and returns 0. It may run
 * them one after another on the caller's thread. Any other return value makes execute return NORMC_ABORTED.
 * It must not throw. Tasks never wait for each other, and results do not depend on how many run at once. */
typedef int (*normc_parallel_for)(void* ctx, int64_t count, normc_task task, void* data);

/** Receives one line of information for people, without a newline, on any thread. It may call the library. */
typedef void (*normc_log)(void* ctx, const char* line);

/** Services that a host may offer to a context; each may be absent. */
typedef struct normc_context_options {
  size_t struct_size;              /**< sizeof of this struct */
  normc_parallel_for parallel_for; /**< NULL: the library's own threads, begun when first needed */
  void* parallel_for_ctx;          /**< first argument of `parallel_for` */
  normc_log log;                   /**< NULL: no log */
  void* log_ctx;                   /**< first argument of `log` */
  /** The most threads of each execute. 0: as many as the process may use; 1: the caller's thread alone. */
  int32_t max_threads;
  /** The CUDA driver; NULL: "libcuda.so.1". Opened when a device is first requested. */
  const char* cuda_library;
} normc_context_options;

/** Creates a context. `options` may be NULL; they are copied, but their functions and pointers are used until
 * the context and all objects made from it are destroyed. */
NORMC_API normc_status normc_context_create(const normc_context_options* options, normc_context** context);
/** Destroys a context; NULL does nothing. */
NORMC_API void normc_context_destroy(normc_context* context);

/** Gives the number of CUDA devices. Fails if there is no driver or no device, and says what is missing. */
NORMC_API normc_status normc_cuda_device_count(normc_context* context, int32_t* count);

/** Facts about a device, as the driver gives them; 0 for what the driver does not know. */
typedef struct normc_cuda_device {
  size_t struct_size;                 /**< sizeof of this struct */
  char name[256];                     /**< zero-terminated */
  int32_t compute_major,              /**< of the compute capability: 9 of sm_90 */
      compute_minor;                  /**< 0 of sm_90 */
  int32_t driver_version;             /**< the newest CUDA that the driver supports; 12080 is 12.8 */
  int32_t multiprocessors;            /**< number of multiprocessors */
  int32_t threads_per_multiprocessor, /**< the most threads that run at once */
      registers_per_multiprocessor;   /**< registers of 32 bits */
  int32_t clock_khz,                  /**< clock of the multiprocessors */
      memory_clock_khz,               /**< clock of the memory */
      memory_bus_bits;                /**< width of the memory bus, in bits */
  int32_t reserved;                   /**< 0 */
  int64_t memory_bytes,               /**< memory of the device */
      l2_bytes;                       /**< second-level cache */
  int64_t shared_per_multiprocessor;  /**< bytes of shared memory */
  int64_t shared_per_block;           /**< the most bytes of shared memory that a kernel can request */
} normc_cuda_device;

/** Describes device `index`, from 0 to the count of normc_cuda_device_count - 1. */
NORMC_API normc_status normc_cuda_device_info(normc_context* context, int32_t index,
                                              normc_cuda_device* device);

/* --------------------------------------------------------------- package -- */

/** An open package. */
typedef struct normc_package normc_package;

/** Opens a package, and checks its form, its sizes and the hash of its manifest. The hash of a blob of code
 * is checked when a plan first needs the blob. The file stays open, so another file may be renamed over it.
 * NORMC_DATA_LOSS: the file is damaged, or no package. NORMC_FAILED_PRECONDITION: its format is of another
 * version. A package holds machine code: open only packages whose author you trust. */
NORMC_API normc_status normc_package_open(normc_context* context, const char* path, normc_package** package);

/** Opens a package of `bytes` bytes in memory, which is copied; otherwise as normc_package_open. */
NORMC_API normc_status normc_package_open_memory(normc_context* context, const void* data, size_t bytes,
                                                 normc_package** package);
/** Destroys a package; NULL does nothing. */
NORMC_API void normc_package_destroy(normc_package* package);

/** Gives the manifest, as zero-terminated JSON (docs/package-format.md). */
NORMC_API normc_status normc_package_manifest(const normc_package* package, const char** json);

/** Checks the hash of every blob, as plan creation does. NORMC_DATA_LOSS: the hash of a blob is wrong. */
NORMC_API normc_status normc_package_verify(const normc_package* package);

/* ------------------------------------------------------------------ plan -- */

/** A problem bound to kernels. */
typedef struct normc_plan normc_plan;

/** Treatment of denormal numbers by CPU kernels. */
typedef enum normc_denormals {
  /** Denormals count as zero, in the kernels only: the host's mode is restored. CUDA kernels keep denormals.
   */
  NORMC_DENORMALS_FLUSH = 0,
  NORMC_DENORMALS_KEEP = 1 /**< denormals are kept */
} normc_denormals;

/** When outputs as large as x are read again. Kernels store outputs of at least `stream_bytes` (a number of
 * the kernel) with non-temporal stores, which do not fill the caches. A host that knows its next operation
 * can decide better. This changes no result. Kernels without that number, such as those for CUDA, ignore it.
 */
typedef enum normc_output_reuse {
  NORMC_OUTPUT_REUSE_UNKNOWN = 0, /**< decided by size */
  NORMC_OUTPUT_REUSE_SOON = 1,    /**< by the next operation: ordinary stores */
  NORMC_OUTPUT_REUSE_LATE = 2     /**< after the caches hold something else: non-temporal stores */
} normc_output_reuse;

/** The value of one number of the spec: "epsilon", "decay", "warmup_steps", ... */
typedef struct normc_number {
  const char* name; /**< its name in the spec */
  double value;     /**< replaces the default */
} normc_number;

/** The request that a plan is made for. */
typedef struct normc_request {
  size_t struct_size; /**< sizeof of this struct */
  /** The canonical text of a problem.
   * @code{.unparsed}
   *   NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}, e.g.
   *   layer_norm:forward@f32[*x1024]           rows x features
   *   instance_norm:infer@bf16[*x*x64]         segments x rows x features
   *   batch_norm:infer_backward@f32[*x64]      the gradient of infer
   *   batch_norm:backward@f16[*x64x*]{layout=channels_first}   segments x features x rows
   *   power_norm_released:forward@f32[*x1024]{heads=16,mask,params=bf16}
   *   rms_norm:forward@f32[*x4096]{y=bf16}     x in f32, y in bf16
   *   rms_norm_residual:forward@bf16[*x4096]{stream=f32}   a residual in f32 beside x in bf16
   *   rms_norm:forward@bf16[*x4096]{round=normalized}      rounded before the scale too
   * @endcode
   * A size is a number, or * for any. A kernel for any number of features serves a given number too. The
   * groups of a norm have to divide the number of features: plan creation checks that, or, if the plan is for
   * any number, the functions that are given one.
   */
  const char* problem;
  const char* isa_cap; /**< the newest instruction set to use, e.g. "x86-64-v3" or "sm_80"; NULL: no cap */
  normc_denormals denormals;   /**< ignored by CUDA plans */
  int32_t max_threads;         /**< 0: the context's; never more than the context's */
  const normc_number* numbers; /**< values that replace the defaults of the spec */
  size_t number_count;         /**< length of `numbers` */
  /** The device, in DLPack's numbers: kDLCPU (or 0), or kDLCUDA with the number of the device in `device_id`.
   * A CUDA plan ignores `max_threads` and `denormals`; its kernels keep denormals. */
  int32_t device_type;
  int32_t device_id; /**< number of the device of that type */
  /** 1: warmup is over, so its phases are left out. On the CPU execute fails if the step of a call is still
   * in warmup. On CUDA the step is on the device, so execute cannot check it. */
  int32_t steady;
  int32_t output_reuse; /**< a normc_output_reuse */
  /** 1: all calls run one kernel, whatever their sizes. 0: if `problem` leaves sizes open and the package has
   * a better kernel for some of them, e.g. for few rows, calls of these sizes run that one. */
  int32_t one_kernel;
  int32_t reserved; /**< 0 */
} normc_request;

/** Creates a plan: chooses a kernel, loads its code, and checks everything that does not depend on a call. It
 * never measures. `request` and what it points to need not outlive the call. NORMC_NOT_FOUND: no kernel of
 * the package serves the problem; NORMC_FAILED_PRECONDITION: not on this device. A CUDA plan belongs to the
 * CUDA context that is current on this thread if that is one of the device, else to the device's primary
 * context. A context that is not primary has to outlive its plans and states. */
NORMC_API normc_status normc_plan_create(const normc_package* package, const normc_request* request,
                                         normc_plan** plan);
/** Destroys a plan; NULL does nothing. */
NORMC_API void normc_plan_destroy(normc_plan* plan);

/** Gives a text for people: the kernels, why they were chosen, why others were rejected, threads, numbers. */
NORMC_API normc_status normc_plan_describe(const normc_plan* plan, const char** text);

/** Gives the value of one number of the kernel that serves any call of the plan, by its name in the manifest:
 * the numbers of the spec, as the request set them, and the sizes in bytes from which on a kernel assumes
 * that a call does not fit in caches. NORMC_NOT_FOUND: the kernel has no such number. */
NORMC_API normc_status normc_plan_number(const normc_plan* plan, const char* name, double* value);

/** One number of the kernel that serves any call of a plan. A value is legal if it is `least` or more, more
 * than `above`, and less than `below`; these are infinite where there is no bound. Numbers of data other than
 * f64 must also be values of a float: 0, or a magnitude from 1.2e-38 to 3.4e38. */
typedef struct normc_number_info {
  size_t struct_size;   /**< sizeof of this struct */
  const char* name;     /**< as in normc_number */
  double value;         /**< the value that the plan uses */
  double default_value; /**< its value where a request does not name it */
  double least;         /**< the smallest legal value */
  double above;         /**< a legal value is greater */
  double below;         /**< a legal value is less */
  int32_t whole;        /**< 1: it must be a whole number of at most 2^53 */
  /** 1: a size in bytes from which on the kernel takes another method; it is no number of the spec. */
  int32_t threshold;
} normc_number_info;

/** Describes number `index` of a plan; NORMC_OUT_OF_RANGE past the last. All entries of a norm have the same
 * numbers. */
NORMC_API normc_status normc_plan_number_info(const normc_plan* plan, size_t index, normc_number_info* info);

/** What a plan does with a tensor. */
typedef enum normc_tensor_use {
  NORMC_TENSOR_READ = 0,          /**< an input that a call must give */
  NORMC_TENSOR_IGNORED = 1,       /**< an input that a call may give, and that is not read */
  NORMC_TENSOR_WRITTEN = 2,       /**< an output that a call must give */
  NORMC_TENSOR_OPTIONAL = 3,      /**< an output that is not computed if it is NULL */
  NORMC_TENSOR_READ_IF_GIVEN = 4, /**< an input whose elements are 0 if it is NULL */
  /** A gradient that no call takes: it is equal to the tensor `same_as` of the call. */
  NORMC_TENSOR_SAME = 5
} normc_tensor_use;

/** The shape of a tensor. */
typedef enum normc_tensor_shape {
  NORMC_TENSOR_ELEMENTS = 0,    /**< that of x */
  NORMC_TENSOR_PER_FEATURE = 1, /**< features, contiguous */
  NORMC_TENSOR_PER_ROW = 2,     /**< that of x without features */
  NORMC_TENSOR_PER_SEGMENT = 3, /**< segments x features, contiguous */
  NORMC_TENSOR_PER_BLOCK = 4,   /**< that of x with blocks in place of features, contiguous */
  NORMC_TENSOR_ONE = 5,         /**< one element */
  NORMC_TENSOR_PER_PAIR = 6     /**< that of x with pairs in place of features */
} normc_tensor_shape;

/** One tensor of the calls of a plan. */
typedef struct normc_tensor_info {
  size_t struct_size;       /**< sizeof of this struct */
  const char* name;         /**< its member of normc_args: "x", "dscale", ... */
  DLDataType dtype;         /**< type of its elements; a mask may also be bool */
  normc_tensor_use use;     /**< whether it is read or written, and may be NULL */
  normc_tensor_shape shape; /**< the axes that it has */
  int32_t reserved;         /**< 0 */
  const char* same_as;      /**< of NORMC_TENSOR_SAME; else NULL */
  int64_t block; /**< of NORMC_TENSOR_PER_BLOCK: the features of a block; 0: all, and no axis of blocks */
  int64_t runs;  /**< of NORMC_TENSOR_PER_PAIR: the runs of features, which have the same angles */
  int64_t pairs; /**< of NORMC_TENSOR_PER_PAIR: the pairs; 0: half the features of a run */
} normc_tensor_info;

/** Describes tensor `index` of those that calls of a plan may give, in the order of normc_args;
 * NORMC_OUT_OF_RANGE past the last. */
NORMC_API normc_status normc_plan_tensor_info(const normc_plan* plan, size_t index, normc_tensor_info* info);

/** The sizes of one call. */
typedef struct normc_sizes {
  size_t struct_size; /**< sizeof of this struct */
  int64_t segments;   /**< only for problems with three dimensions; others ignore it */
  int64_t rows;       /**< rows of one segment */
  int64_t features;   /**< 0: the number in the plan's problem, if it has one */
} normc_sizes;

/** Gives the kernel that calls of these sizes run, as an index into "kernels" of the manifest; `sizes` NULL:
 * the kernel that serves any call of the problem. */
NORMC_API normc_status normc_plan_kernel(const normc_plan* plan, const normc_sizes* sizes, size_t* index);

/** The type of a field. */
typedef enum normc_type {
  NORMC_F32 = 0, /**< float */
  NORMC_F64 = 1, /**< double */
  NORMC_I64 = 2  /**< int64_t */
} normc_type;

/** The most dimensions of a tensor. */
#define NORMC_MAX_DIMS 16

/** The most dimensions of a field. */
#define NORMC_MAX_FIELD_DIMS 4

/** The most fields of a state, and of saved statistics. */
#define NORMC_MAX_FIELDS 32

/** The size of a call that a dimension of a field is. */
typedef enum normc_extent {
  NORMC_EXTENT_FIXED = 0,    /**< the same number in every call */
  NORMC_EXTENT_SEGMENTS = 1, /**< segments */
  NORMC_EXTENT_ROWS = 2,     /**< rows of one segment */
  NORMC_EXTENT_FEATURES = 3  /**< features */
} normc_extent;

/** What the entry of a plan does with a field; a sum of these. */
typedef enum normc_field_access {
  NORMC_FIELD_READ = 1,   /**< the value before the call is used */
  NORMC_FIELD_WRITTEN = 2 /**< the call computes its value; otherwise it copies state_in to state_out */
} normc_field_access;

/** One array inside the state, or inside the saved statistics. */
typedef struct normc_field {
  size_t struct_size;                  /**< sizeof of this struct */
  const char* name;                    /**< "psi2", "nu", "running_mean", "rstd", ... */
  normc_type type;                     /**< type of each element */
  int32_t ndim;                        /**< number of dimensions; 0: a single number */
  int64_t shape[NORMC_MAX_FIELD_DIMS]; /**< `ndim` sizes */
  size_t offset;    /**< in bytes from the start of the buffer; a multiple of 64, or of 8 in
                       a partial */
  size_t bytes;     /**< bytes of all elements */
  double init;      /**< its value in a fresh state; 0 for saved statistics */
  DLDataType dtype; /**< `type` as a DLPack type */
  int32_t access;   /**< normc_field_access of the plan's entry; 0: none, or the query has no plan */
  int32_t extent[NORMC_MAX_FIELD_DIMS]; /**< a normc_extent for each of the `ndim` sizes */
} normc_field;

/** Gives the bytes of the state, which a norm carries from step to step. The state is a flat buffer of the
 * caller, so it can be saved, copied and sent like any other array. It depends on the number of features
 * only. 0 for norms without state. */
NORMC_API normc_status normc_plan_state_bytes(const normc_plan* plan, const normc_sizes* sizes,
                                              size_t* bytes);
/** Describes field `index` of the state; NORMC_OUT_OF_RANGE past the last. */
NORMC_API normc_status normc_plan_state_field(const normc_plan* plan, const normc_sizes* sizes, size_t index,
                                              normc_field* field);
/** Writes a fresh state. `bytes` has to be the number of normc_plan_state_bytes, and `memory` aligned to 8
 * bytes. For a CUDA plan `memory` is on the device; the copy is complete on return, and not ordered with the
 * caller's streams. */
NORMC_API normc_status normc_plan_state_init(const normc_plan* plan, const normc_sizes* sizes, void* memory,
                                             size_t bytes);

/** Gives the bytes of the saved statistics, which forward passes to its backward. Forward and backward plans
 * of one norm, dtype and shape have the same layout, whichever kernels they chose. Infer and infer_backward
 * have none: 0 bytes and no fields. */
NORMC_API normc_status normc_plan_saved_bytes(const normc_plan* plan, const normc_sizes* sizes,
                                              size_t* bytes);
/** Describes field `index` of the saved statistics; NORMC_OUT_OF_RANGE past the last. */
NORMC_API normc_status normc_plan_saved_field(const normc_plan* plan, const normc_sizes* sizes, size_t index,
                                              normc_field* field);

/** Gives the bytes of one partial of the plan's entry: sums in f64 over the rows of a call, which the caller
 * adds up over ranks or micro-batches. It depends on the norm and the number of features alone, never on
 * kernels, sizes or devices. Forward entries have the fields of the forward, backward entries those of the
 * backward; commit has both, one behind the other. 0 for all other entries. */
NORMC_API normc_status normc_plan_partial_bytes(const normc_plan* plan, const normc_sizes* sizes,
                                                size_t* bytes);
/** Describes field `index` of a partial, whose fields have no gaps; NORMC_OUT_OF_RANGE past the last. */
NORMC_API normc_status normc_plan_partial_field(const normc_plan* plan, const normc_sizes* sizes,
                                                size_t index, normc_field* field);

/** Gives bytes of scratch that are enough for every call of these sizes, or of fewer segments or rows, so one
 * query with the largest sizes is enough. A workspace may have any alignment, and holds nothing between
 * calls. Calls that run at the same time need one each. Most calls need less; one that gets too little fails
 * and says how much it needs. */
NORMC_API normc_status normc_plan_workspace_bytes(const normc_plan* plan, const normc_sizes* sizes,
                                                  size_t* bytes);

/* --------------------------------------------------------------- execute -- */

/** A state whose memory the library owns. */
typedef struct normc_state normc_state;

/** The arguments of one call. The problem of a plan decides which ones it takes:
 *
 * @code{.unparsed}
 *                    reads                                 writes (in brackets: may be NULL)
 *   forward          x, scale, bias, mask, state_in        y, [saved], [state_out]
 *   backward         x, dy, scale, mask, state_in, saved   [dx], [dscale], [dbias], [state_out]
 *   infer            x, scale, bias, mask, state_in        y
 *   infer_backward   x, dy, scale, mask, state_in          [dx], [dscale], [dbias]
 * @endcode
 *
 * and, where the batch of a norm is divided between ranks or micro-batches (docs/many-ranks.md),
 *
 * @code{.unparsed}
 *                     reads                                    writes
 *   norms that need statistics before y
 *     forward_reduce    x, mask                                partial
 *     forward_apply     x, scale, bias, mask, partials, state_in   y, [saved], [state_out]
 *     backward_reduce   x, dy, scale, mask, saved              partial, [dscale], [dbias]
 *     backward_apply    x, dy, scale, mask, partials, saved, state_in   [dx], [state_out]
 *   norms that divide by the running moment
 *     forward_reduce    x, scale, bias, mask, state_in         y, partial, [saved]
 *     backward_reduce   x, dy, scale, mask, state_in, saved    partial, [dx], [dscale], [dbias]
 *     commit            partials, state_in                     state_out
 * @endcode
 *
 * if the norm has them; both backwards also take bias if the norm has an activation, a gate behind the norm
 * or a modulation with a scale. What stands around a norm adds
 *
 * @code{.unparsed}
 *              forward, infer                          backward, infer_backward
 *   residual   reads residual, writes residual_out     reads residual or residual_out, [dresidual_out],
 *                                                      writes [dresidual]
 *   gate       reads gate                              reads gate, writes [dgate]
 *   modulate   reads mod_scale, mod_shift              reads both, writes [dmod_scale], [dmod_shift]
 *   rope       reads rope_cos, rope_sin                reads both
 *   quantize   writes codes in place of y, reads       as without
 *              quant_scale or writes quant_scale_out
 * @endcode
 *
 * With residual_out, a residual in front of the norm that is passed on, a backward reads neither x nor
 * residual unless a gate stands before the norm, and dresidual_out is 0 if it is NULL. dresidual is taken
 * only where it is neither dx nor dy (normc_tensor_info tells which it is). Where the batch is divided,
 * forward_reduce reads of these what stands in front of the norm, and, if it writes y, the others too; the
 * call that writes y writes residual_out, codes and quant_scale_out. Both backwards read the inputs.
 * dmod_scale and dmod_shift are written by backward_reduce. dresidual and dgate are written by the call that
 * writes dx, which takes dresidual_out: by backward_apply where dx waits for the batch, also a dgate that is
 * a sum over rows.
 *
 * infer_backward is the gradient of infer for norms with a state. An output in brackets that is NULL is not
 * computed; if state_out is NULL the state does not change. A backward, infer_backward, backward_apply or
 * commit whose outputs, state_out among them, are all NULL is an error ("nothing to compute: ..."), also if
 * dx is the only one. A host that recomputes activations sets state_out to NULL in
 * the first pass, so that the second pass, which updates the state, reads the same state as the first. A
 * backward ignores inputs that it does not need. Any other argument that the plan does not take is an error,
 * because it would have no effect.
 *
 * Tensors. x, y, dy, dx, residual, residual_out, dresidual_out, dresidual, codes have one shape: that of the
 * problem, e.g. rows x features. Rows may be several dimensions if one stride leads through all of them:
 * batch x time x features for a problem of two dimensions, N x C x H x W for channels_first. The contiguous
 * axis (features, or rows for channels_first) has stride 1. The others have any stride, 0 in inputs alone.
 * Strides of a tensor without elements are ignored. scale, bias, dscale, dbias: [features], contiguous.
 * gate, mod_scale, mod_shift: the shape of x, [segments, features] or [features], as the norm decides, the
 * last two contiguous; dgate, dmod_scale, dmod_shift have theirs. mask: the shape of x without features,
 * contiguous rows, 8-bit unsigned or bool, 1 for a real row, 0 for padding. codes: 8-bit signed, or DLPack's
 * kDLFloat8_e4m3fn. quant_scale: one element of f32. quant_scale_out: the shape of x without features, or
 * with blocks in their place, contiguous; f32, or kDLFloat8_e8m0fnu for powers of two. rope_cos, rope_sin:
 * the shape of x with pairs in place of features, f32; pairs have stride 1, the others any stride, also 0.
 *
 * State and saved statistics. Each is one buffer, aligned to 8 bytes, or one tensor for each field, in the
 * order of normc_plan_state_field and normc_plan_saved_field: an array of pointers in state_in_fields,
 * state_out_fields and saved_fields, with its length in state_field_count and saved_field_count. A call gives
 * state_in and state_out in the same way. The tensor of a field has the field's type, as many elements, in
 * any number of dimensions, and is contiguous. A pointer may be NULL if the plan does not access the field
 * (`access` of normc_field): a field of the state that is not written is copied from state_in_fields to
 * state_out_fields if both are given.
 *
 * Partials. partial is one buffer, aligned to 8 bytes. partials is partial_count of them, one behind another,
 * which the call adds up in this order. So a caller may give the sum of all ranks, as one partial, or those
 * of all ranks.
 *
 * Memory. y may be x, dx may be dy, and residual_out may be residual, with the same strides and elements of
 * one type, unless the norm has `rope`; state_out may be state_in, and a field of state_out_fields the same
 * field of state_in_fields. Any other overlap of written memory with an argument is an error. */
typedef struct normc_args {
  size_t struct_size;     /**< sizeof of this struct */
  const DLTensor* x;      /**< input of every entry */
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
  size_t workspace_bytes; /**< at least what the call needs (normc_plan_workspace_bytes) */
  normc_state*
      state;    /**< replaces state_in and state_out: all entries read it, forward and backward write it */
  void* stream; /**< NULL on a CPU; on CUDA a CUstream or cudaStream_t, NULL: the default stream */
  const DLTensor* const* state_in_fields;  /**< replaces `state_in` */
  const DLTensor* const* state_out_fields; /**< replaces `state_out` */
  size_t state_field_count;                /**< length of both; exactly the fields of the state */
  const DLTensor* const* saved_fields;     /**< replaces `saved` */
  size_t saved_field_count;                /**< its length; exactly the fields of the saved statistics */
  void* partial;                           /**< the sums of this call */
  size_t partial_bytes;                    /**< exactly normc_plan_partial_bytes */
  const void* partials;                    /**< the sums of several calls */
  size_t partials_bytes;                   /**< exactly partial_count times normc_plan_partial_bytes */
  size_t partial_count;                    /**< number of partials, 1 or more */
  const DLTensor* residual;                /**< added to the input of the norm, or to its output */
  const DLTensor* residual_out;  /**< the sum of input and residual: output of forward, input of backward */
  const DLTensor* gate;          /**< its function multiplies the input of the norm, or its output */
  const DLTensor* mod_scale;     /**< factor of a segment or a row */
  const DLTensor* mod_shift;     /**< what is added to a segment or a row */
  const DLTensor* dresidual_out; /**< gradient of residual_out: input of backward; NULL: 0 */
  const DLTensor* dresidual;   /**< gradient of residual, where it is neither dx nor dy: output of backward */
  const DLTensor* dgate;       /**< gradient of gate: output of backward */
  const DLTensor* dmod_scale;  /**< gradient of mod_scale: output of backward */
  const DLTensor* dmod_shift;  /**< gradient of mod_shift: output of backward */
  const DLTensor* codes;       /**< the quantized output of forward and infer, in place of y */
  const DLTensor* quant_scale; /**< the scale of all codes, where the norm takes one */
  const DLTensor* quant_scale_out; /**< the scale of each row or block of codes: output beside them */
  const DLTensor* rope_cos;        /**< cosine of the angle of each row and pair of features */
  const DLTensor* rope_sin;        /**< its sine */
} normc_args;

/** Executes the plan. On a CPU it returns when all outputs are written. It allocates nothing, takes no lock,
 * does no I/O, and restores the floating-point mode. Any number of threads may execute one plan; the caller
 * orders calls on one state. Results are bitwise equal for any number of threads. NORMC_INVALID_ARGUMENT: an
 * argument breaks a rule of normc_args; NORMC_FAILED_PRECONDITION: the plan does not serve these sizes.
 *
 * On CUDA, tensors, state, saved and workspace are memory of the plan's device, and execute only enqueues
 * copies inside the device and launches on `stream`. It allocates nothing, waits for nothing and reads
 * nothing back, so it may be called while the stream is captured into a graph. A replay reads step, state and
 * tensors at the addresses of the captured call. No other thread may enqueue on the stream during the call.
 * The CUDA context of the calling thread is restored. If a kernel fails on the device, the error is reported
 * by the function that waits for the stream, and by later calls. */
NORMC_API normc_status normc_execute(const normc_plan* plan, const normc_args* args);

/** A host's barrier: returns once each thread of the call has called it as often as the caller has. What a
 * thread wrote before it is visible to all after it. It must not throw. */
typedef void (*normc_barrier)(void* ctx);

/** Executes the part of one thread, for hosts whose threads run in step and start no others: the operators of
 * ggml, a parallel region of OpenMP. Each of `nth` threads calls it with another `ith`, 0 to nth - 1, and
 * otherwise equal arguments. Outputs are bitwise those of normc_execute for any `nth`, also if there are
 * fewer tasks than threads. It allocates nothing, takes no lock, runs on the calling thread alone whatever
 * max_threads is, and restores the floating-point mode before it calls `barrier` or returns.
 *
 * Order. The library calls `barrier(ctx)` on every thread equally often, as normc_plan_barriers tells: before
 * a phase that needs what other threads computed. It does not call it at the end: an output is complete when
 * all `nth` calls have returned. No thread may write an argument, or use memory of this call for the next
 * one, before that; a state object is an argument too.
 *
 * Errors. All threads find the same errors in the same arguments, and return the same status with nothing
 * written and without a call of `barrier`, so no thread waits for another that was refused. `barrier` may be
 * NULL if `nth` is 1 or the kernel has one phase; otherwise NULL is such an error. `ith` alone differs
 * between threads: if it is not from 0 to nth - 1, the thread computes nothing, calls `barrier` as often as
 * the others and then returns NORMC_INVALID_ARGUMENT; the outputs of the call are undefined.
 *
 * NORMC_FAILED_PRECONDITION: a CUDA plan, of which normc_execute enqueues the whole call. */
NORMC_API normc_status normc_execute_part(const normc_plan* plan, const normc_args* args, int32_t ith,
                                          int32_t nth, normc_barrier barrier, void* ctx);

/** Gives how often each thread of normc_execute_part calls `barrier` in a call of these sizes by more than
 * one thread; 0 for a kernel of one phase. Tensors that are left out do not change it. */
NORMC_API normc_status normc_plan_barriers(const normc_plan* plan, const normc_sizes* sizes, int32_t* count);

/* ---------------------------------------------------------- state object -- */

/** Creates a fresh state, for hosts that do not want to own its memory. A plan that the state does not fit
 * refuses it. A state is made from any plan of a norm, and used with all plans of that norm whose states have
 * the same fields and number of features (those of f32, bf16 and f16 have), on the same device and in the
 * same CUDA context. (A green context is a context of its own: there, pass the buffer as state_in and
 * state_out.) `features` 0: the number in the plan's problem. A state is not thread-safe.
 *
 * The buffer of a CUDA plan's state is on the device. The functions below then copy on the default stream and
 * wait for it. A caller that uses the state on other streams waits for these first. The functions must not be
 * called during a capture, except normc_state_destroy (normc_plan_create and normc_plan_destroy may be called
 * too). */
NORMC_API normc_status normc_state_create(const normc_plan* plan, int64_t features, normc_state** state);
/** Destroys a state; NULL does nothing. */
NORMC_API void normc_state_destroy(normc_state* state);

/** Sets every field to its initial value. */
NORMC_API normc_status normc_state_init(normc_state* state);

/** Gives the buffer of the state, e.g. to save it, and its bytes; aligned to 64 bytes. */
NORMC_API normc_status normc_state_data(normc_state* state, void** data, size_t* bytes);

/** Describes field `index` of the state, with `access` 0; NORMC_OUT_OF_RANGE past the last. */
NORMC_API normc_status normc_state_field(const normc_state* state, size_t index, normc_field* field);

/** Copies one field to `data` of the host; `bytes` must be the field's. NORMC_NOT_FOUND: no such field. */
NORMC_API normc_status normc_state_get(const normc_state* state, const char* field, void* data, size_t bytes);
/** Copies one field from `data` of the host; `bytes` must be the field's. NORMC_NOT_FOUND: no such field. */
NORMC_API normc_status normc_state_set(normc_state* state, const char* field, const void* data, size_t bytes);

/** Copies a state. Both must be of the same norm, with the same fields and number of features; they may be on
 * different devices. */
NORMC_API normc_status normc_state_copy(normc_state* to, const normc_state* from);

#ifdef __cplusplus
}
#endif
#endif /* NORMC_H */
