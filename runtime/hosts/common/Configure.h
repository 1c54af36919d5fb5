// The C functions by which a host's language sets a registry up and asks it: Python calls them by ctypes.
// Each library of operators has them, for its own registry.
#pragma once

#include "runtime/normc.h"

extern "C" {

/// Functions return null, or the reason of a failure as text that is valid until the next call of the thread.
NORMC_API const char* normc_hosts_add_package(const char* source, const char* path);
NORMC_API const char* normc_hosts_add_norm(const char* source, const char* path);
NORMC_API const char* normc_hosts_set_compiler(const char* program, const char* cache);
NORMC_API const char* normc_hosts_set_log(normc_log);

/// Gives what a graph has to know of an operator before it runs, as JSON in `json`:
///   {"scale": true, "neutral_scale": 1.0, "bias": true, "y": true, "codes": null, "dx": false,
///   "scale_gradient": false,
///    "bias_gradient": false, "reads_x": true, "reads_scale": true, "reads_bias": true, "reads_state": false,
///    "writes_state": true, "partial": 0,
///    "state": [{"name": "psi2", "dtype": "f32", "shape": ["features"], "init": 1.0, "read": true,
///               "written": true}, ...],
///    "saved": [{"name": "rstd", "dtype": "f32", "shape": ["segments", "rows", 1], ...}, ...],
///    "around": [{"name": "gate", "use": "read", "shape": "segments", "dtype": "f32", "pairs": 0, "blocks":
///    0,
///                "same_as": null}, ...],
///    "numbers": {"epsilon": 1e-05}}
/// `entry`: "forward", ...; `data` and `params`: "f32", ...; an empty `params` is the default. `mask`: 1 with
/// one. `cuda`: the number of the device; negative: the CPU.
NORMC_API const char* normc_hosts_describe(const char* text, const char* entry, const char* data,
                                           const char* params, int mask, int cuda, const char** json);
}
