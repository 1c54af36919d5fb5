// The manifest of a package as checked values: docs/package-format.md in C++.
//
// Everything a call relies on later is verified here, once: names, indices,
// limits, which shapes may stand where. A Manifest that was returned needs no
// further check.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/Operands.h"
#include "runtime/core/Sizes.h"
#include "runtime/normc.h"

namespace normc::runtime {

/// So that a call can keep its tables on the stack.
inline constexpr size_t kMaxOperands = 64, kMaxPhases = 16, kMaxScalars = 64, kMaxFields = 32;

enum class Role : uint8_t { Tensor, StateIn, StateOut, Saved, Workspace };

struct Operand {
  Role role = Role::Tensor;
  bool written = false;
  bool zeroed = false;  ///< Workspace on CUDA only: cleared before the first phase of a call
  DType type = DType::F32;
  Tensor tensor = kX;  ///< Role::Tensor only
  size_t field = 0;    ///< StateIn, StateOut, Saved: index of the field
  Shape shape;         ///< Workspace only
};

struct FieldInfo {
  std::string name;
  DType type = DType::F32;
  Shape shape;
  double init = 0;
  bool operator==(const FieldInfo&) const = default;
};

/// How a phase is launched on a CUDA device (runtime/abi/cuda.h).
struct Launch {
  int64_t threads = 1, columns = 0, cluster = 1, cooperative = 1, shared = 0, least = 0;
  bool dependent = false;
};

struct Phase {
  std::string symbol, role;
  Shape units, weight;
  int64_t minUnits = 1, enoughUnits = 1, multiple = 1, group = 1, maxChunks = 1;
  Launch launch;          ///< CUDA only
  std::string unaligned;  ///< CUDA only: the entry for any alignment; empty: `symbol`
  bool warmupOnly = false;
};

/// A number of the norm, its default, and which others are legal: what the manifest says of it.
struct Scalar {
  std::string name;
  double value = 0;
  double least = -HUGE_VAL, above = -HUGE_VAL, below = HUGE_VAL;
  bool whole = false;
};

/// Both ends belong to it.
struct Range {
  int64_t least = 0, most = kHuge;
  bool has(int64_t n) const { return n >= least && n <= most; }
  int64_t width() const { return most - least; }
  bool operator==(const Range&) const = default;
};

struct KernelInfo {
  std::string problem;  ///< canonical text
  ProblemText parts;
  size_t norm = 0, blob = 0;
  std::string device, isa, generator, schedule, origin;
  std::optional<size_t> cubin;  ///< CUDA only: blob of machine code; `blob` is PTX
  int64_t alignment = 0;        ///< CUDA only: of the phases' `symbol`, in bytes
  bool onCuda() const { return device == "cuda"; }
  int64_t featuresMultiple = 1;  ///< what the number of features is a multiple of: its groups have as many each
  bool divides(int64_t features) const { return features % featuresMultiple == 0; }
  Range rows, run;  ///< that it serves: of all segments, and of one
  bool serves(const Sizes& sizes) const {
    return rows.has(sizes.totalRows()) && run.has(sizes.rows) && divides(sizes.features);
  }
  std::vector<Operand> operands;
  std::vector<Scalar> scalars;
  std::vector<FieldInfo> state, saved;
  std::vector<Phase> phases;
};

struct BlobInfo {
  std::string sha256;  ///< 64 hex digits
  uint64_t offset = 0, bytes = 0;
  std::string kind, isa;
};

struct NormInfo {
  std::string name, hash;
};

struct Manifest {
  std::vector<BlobInfo> blobs;
  std::vector<NormInfo> norms;
  std::vector<KernelInfo> kernels;
};

/// The index of the element called `name`, or -1.
template <typename T>
int indexOf(const std::vector<T>& items, std::string_view name) {
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].name == name) return static_cast<int>(i);
  return -1;
}

/// Reads and checks. Errors name the place: "kernels[3].phases[0].min_units is 0; it must be at least 1".
normc_status parseManifest(std::string_view json, uint64_t fileBytes, Manifest& manifest);

}  // namespace normc::runtime
