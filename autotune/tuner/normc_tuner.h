/** @file
 * normc tuner: a C API for hosts that tune at run time.
 *
 * The runtime never measures. This library does, when it is asked: it judges and times the candidates of a
 * bundle (a folder that `normc tune export` made) in a worker process, keeps every measurement as a record,
 * and names a package with the best kernel. It needs no compiler.
 *
 * The conventions are those of normc.h: every function returns a normc_status, and normc_tuner_last_error()
 * has one sentence for the calling thread after anything but NORMC_OK; structs begin with `struct_size`,
 * zero means "default"; nothing throws, exits or prints.
 *
 * A tuner is used by one thread at a time. Several tuners may be, but two that measure at once disturb each
 * other's times.
 *
 * docs/tuner-api.md explains it with an example.
 */
#ifndef NORMC_TUNER_H
#define NORMC_TUNER_H

#include <normc/normc.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The sentence that belongs to the last failure of this library on this thread; "" before the first. */
NORMC_API const char* normc_tuner_last_error(void);

/** A bundle and its records, opened for tuning. */
typedef struct normc_tuner normc_tuner;

/** How far a call of normc_tuner_run is. */
typedef struct normc_tuner_status {
  size_t struct_size;  /**< sizeof of this struct */
  const char* problem; /**< the one that is tuned */
  const char* phase;   /**< "screening", "racing", "confirming"; "starting" before the first candidate */
  double seconds,      /**< since the call began */
      budget_seconds;  /**< that it may take */
  int64_t done,        /**< candidates screened so far */
      candidates;      /**< that are planned; more may come */
  double ratio;        /**< time of the best so far over that of the default; 1 before there is one */
} normc_tuner_status;

/** Called on the thread of normc_tuner_run, between measurements. 0: go on. Anything else: end the call with
 * NORMC_ABORTED. Must not throw, nor destroy the tuner; normc_tuner_run of the same tuner is refused here. */
typedef int (*normc_tuner_progress)(void* ctx, const normc_tuner_status* status);

/** Options of a tuner; each may be absent. */
typedef struct normc_tuner_options {
  size_t struct_size;  /**< sizeof of this struct */
  const char* records; /**< the file that measurements are appended to; NULL: results.jsonl in the bundle */
  const char* worker;  /**< normc-worker; NULL: beside this library, or in ../bin from there */
  const char* cuda_library;      /**< the CUDA driver, of a bundle for CUDA; NULL: "libcuda.so.1" */
  normc_tuner_progress progress; /**< NULL: progress is not reported */
  void* progress_ctx;            /**< first argument of `progress` */
} normc_tuner_options;

/** Opens a bundle, and its records, which are made if need be; relative paths are those of the folder that
 * the process is in now. `options` may be NULL. Opening a bundle means trusting its author: it holds machine
 * code. */
NORMC_API normc_status normc_tuner_open(const char* bundle, const normc_tuner_options* options,
                                        normc_tuner** tuner);
/** Closes the records and destroys the tuner; NULL does nothing. */
NORMC_API void normc_tuner_destroy(normc_tuner* tuner);

/** The problems that the bundle has candidates for, in its order, each as its canonical text. The text
 * is the tuner's. A loop over them ends with NORMC_OUT_OF_RANGE. */
NORMC_API normc_status normc_tuner_problem(const normc_tuner* tuner, size_t index, const char** problem);

/** A problem to tune and the call it is tuned for. */
typedef struct normc_tuner_request {
  size_t struct_size;    /**< sizeof of this struct */
  const char* problem;   /**< one of the bundle's; options in any order, as in normc_request */
  int64_t rows;          /**< of one segment; 1 or more */
  int64_t segments;      /**< of a problem with three dimensions; 0: 1, all that one with two may have */
  double budget_seconds; /**< for the whole call; 0: 20 */
  const char* policy;    /**< "warm", "cold" or "pipeline", the state of the caches; NULL: "warm" */
  int32_t threads;   /**< that kernels may use, 65536 at most; 0, or more than the process may: all that it
                      * may */
  int32_t device_id; /**< of a bundle for CUDA, as the driver counts */
  int32_t fresh;     /**< 1: measure even if the records hold a choice */
  int32_t reserved;  /**< 0 */
} normc_tuner_request;

/** The schedule that was chosen. */
typedef struct normc_tuner_result {
  size_t struct_size; /**< sizeof of this struct */
  const char*
      package; /**< the path of a package that holds the chosen kernel alone; valid until the next call */
  const char* schedule;   /**< the text of that kernel's schedule, for people; valid until the next call */
  double ratio,           /**< time of the chosen over that of the default; 1 in a tie */
      low,                /**< lower end of its 95 % interval */
      high;               /**< upper end of its 95 % interval */
  double default_seconds; /**< of one call of the default */
  int64_t candidates;     /**< that were judged; 0 if nothing was measured */
  int64_t rejected;       /**< of those: wrong, crashed, hung, refused, or the same code as another */
  int32_t won; /**< 0: nothing is faster than the default beyond the noise, or the budget ended before that
                * was known; the default is chosen, and in the second case a later call measures again, unless
                * the records hold an earlier choice */
  int32_t from_records; /**< 1: chosen by an earlier call; nothing was measured */
} normc_tuner_result;

/** Finds the best kernel for a problem at these sizes on this machine. It takes the budget at most, in most
 * of which a core or the device is busy. Nothing is changed but the records. */
NORMC_API normc_status normc_tuner_run(normc_tuner* tuner, const normc_tuner_request* request,
                                       normc_tuner_result* result);

#ifdef __cplusplus
}
#endif
#endif /* NORMC_TUNER_H */
