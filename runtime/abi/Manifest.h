// The manifest of a package (docs/package-format.md) as values. The writer fills these structs, the runtime
// and the tools read them.
//
// A key of the manifest is a member here and its line in runtime/abi/ManifestKeys.h: its name, what it may
// be, and whether it may be left out. What is legal only beside something else:
// runtime/package/ManifestRules.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/abi/Numbers.h"
#include "runtime/abi/Operands.h"
#include "runtime/abi/ProblemText.h"
#include "runtime/abi/Sizes.h"

namespace normc::package {

inline constexpr int64_t kSchema = 1;

/// So that a call can keep its tables on the stack.
inline constexpr size_t kMaxOperands = 64, kMaxPhases = 16, kMaxScalars = 64, kMaxFields = 32,
                        kMaxDimensions = 4;

enum class Role : uint8_t { Tensor, StateIn, StateOut, Saved, Workspace };
inline constexpr auto kRoles = {Role::Tensor, Role::StateIn, Role::StateOut, Role::Saved, Role::Workspace};
constexpr std::string_view name(Role role) {
  constexpr std::string_view names[] = {"tensor", "state_in", "state_out", "saved", "workspace"};
  return names[size_t(role)];
}

enum class Access : uint8_t {
  Read,
  Write,
  Both,    ///< workspace alone
  Zeroed,  ///< likewise, on CUDA only: it is zero when the first phase of a call begins
};
inline constexpr auto kAccesses = {Access::Read, Access::Write, Access::Both, Access::Zeroed};
constexpr std::string_view name(Access access) {
  constexpr std::string_view names[] = {"read", "write", "both", "zeroed"};
  return names[size_t(access)];
}

enum class When : uint8_t { Always, Warmup };
inline constexpr auto kWhens = {When::Always, When::Warmup};
constexpr std::string_view name(When when) { return when == When::Always ? "always" : "warmup"; }

/// The roles of phases; for people.
inline constexpr auto kPhaseRoles = {std::string_view("statistics"), std::string_view("combine"),
                                     std::string_view("apply"), std::string_view("finish")};

struct Operand {
  Role role = Role::Tensor;
  std::string name;  ///< of the tensor, the field or the block of workspace
  DType type = DType::F32;
  Access access = Access::Read;
  Shape shape = {};    ///< Workspace only
  Tensor tensor = kX;  ///< Role::Tensor: of `name`, once the manifest was read
  size_t field = 0;    ///< StateIn, StateOut, Saved: likewise, its index
  bool written() const { return access != Access::Read; }
  bool zeroed() const { return access == Access::Zeroed; }
};

/// A number of the norm, or a threshold (runtime/abi/Numbers.h), and its default.
struct Scalar {
  std::string name;
  double value = 0;
  NumberRange legal = {};
};

struct Field {
  std::string name;
  DType type = DType::F32;  ///< f32, f64 or i64
  Shape shape = {};
  double init = 0;
  bool operator==(const Field&) const = default;
};

/// How a phase is launched on a CUDA device (runtime/abi/cuda.h).
struct Launch {
  int64_t threads = 1;      ///< of a block
  int64_t columns = 0;      ///< features of a block along the grid's y; 0: all of them
  int64_t cluster = 1;      ///< blocks of a chunk
  int64_t cooperative = 1;  ///< likewise, no cluster, that wait for each other: all are there at once
  int64_t shared = 0;       ///< dynamic shared memory, in bytes
  int64_t least = 0;        ///< chunks that are launched at least; one beyond the phase's has no units
  bool dependent = false;   ///< begins while the phase before it runs, and waits for it by itself
};

/// What a phase takes of a CUDA device, as ptxas says; for people.
struct Resources {
  int64_t registers = 0;  ///< of a thread
  int64_t shared = 0;     ///< static, of a block, in bytes
  int64_t spills = 0;     ///< bytes
  int64_t blocks = 0;     ///< of this phase, that one multiprocessor holds at once
  int64_t clusters = 0;   ///< of its blocks, that a GPC holds at once; 0: they are launched singly
};

struct Phase {
  std::string symbol, role;
  Shape units;
  int64_t minUnits = 1, multiple = 1, maxChunks = 1;
  When when = When::Always;
  Shape weight = {};                          ///< cost of a unit; a chunk costs at least `minUnits`; empty: 1
  std::optional<int64_t> enoughUnits = {};    ///< of a chunk, once there are chunks for many threads
  std::optional<int64_t> group = {};          ///< the multiple that chunks are of many units
  std::optional<Launch> launch = {};          ///< CUDA, and always there
  std::optional<std::string> unaligned = {};  ///< CUDA: its entry for any alignment; absent: `symbol` is
  std::optional<Resources> resources = {};    ///< where there is a cubin
  int64_t unitsEnough() const { return enoughUnits.value_or(minUnits); }
  int64_t unitsOfGroup() const { return group.value_or(multiple); }
};

/// X-sized transfers.
struct Traffic {
  int64_t reads = 0, writes = 0;
  std::optional<int64_t> leastReads = {};  ///< of a kernel that keeps what it reads on chip; absent: the same
  int64_t heldRows = 0;                    ///< of a column: read so seldom, those after them `reads` times
  int64_t least() const { return leastReads.value_or(reads); }
  bool operator==(const Traffic&) const = default;
};

/// The sizes of calls that a kernel is offered for.
struct Limits {
  int64_t rowsMin = 0;                  ///< of all segments
  std::optional<int64_t> rowsMax = {};  ///< absent: no limit
  int64_t runMin = 0;                   ///< of one segment
  std::optional<int64_t> runMax = {};
  Range rows() const { return {rowsMin, rowsMax.value_or(kHuge)}; }
  Range run() const { return {runMin, runMax.value_or(kHuge)}; }
  bool serve(int64_t segments, int64_t rowsOfOne) const {
    return rows().has(multiply(segments, rowsOfOne)) && run().has(rowsOfOne);
  }
  /// Less is narrower: of two kernels that serve a call the narrower comes first. Rows of all segments count
  /// first.
  std::pair<int64_t, int64_t> widths() const { return {rows().width(), run().width()}; }
  bool operator==(const Limits&) const = default;
};

struct Kernel {
  std::string problem;  ///< canonical text
  ProblemText parts;    ///< what it says; `norm` once the manifest was read
  Limits limits = {};
  size_t norm = 0, blob = 0;
  std::optional<size_t> cubin = {};  ///< CUDA: blob of machine code; `blob` is PTX
  int64_t alignment = 0;             ///< CUDA: of the phases' `symbol`, in bytes; 0: an element's
  int64_t featuresMultiple =
      1;  ///< what any number of features is a multiple of: its groups have as many each
  std::string device = "cpu", isa;
  std::string generator, schedule, origin = "default";
  std::vector<std::string> selection = {};  ///< how the schedule was chosen, a line for each rung
  std::vector<Operand> operands;
  std::vector<Scalar> scalars;
  std::vector<Field> state, saved;
  std::vector<Phase> phases;
  Traffic traffic;
  std::optional<Traffic> warmupTraffic = {};

  bool onCuda() const { return device == "cuda"; }
  bool divides(int64_t features) const { return features % featuresMultiple == 0; }
  bool serves(const Sizes& sizes) const {
    return limits.serve(sizes.segments, sizes.rows) && divides(sizes.features);
  }
  /// Returns the name of the strategy: what the schedule's text begins with.
  std::string strategy() const { return schedule.substr(0, schedule.find(',')); }
};

struct Blob {
  std::string sha256;              ///< 64 hexadecimal digits
  uint64_t offset = 0, bytes = 0;  ///< in the file
  std::string kind, isa;           ///< kind: elf, ptx, cubin
};

struct Norm {
  std::string name, hash;  ///< the structural hash
  std::string text;        ///< canonical text of the spec
  bool operator==(const Norm&) const = default;
};

struct Manifest {
  int64_t schema = kSchema, abi = NORMC_KERNEL_ABI;
  std::map<std::string, std::string> producer;  ///< {"normc": "0.1.0", "llvm": "22.1.8"}
  std::vector<Blob> blobs;
  std::vector<Norm> norms;
  std::vector<Kernel> kernels;
};

/// The index of the element called `name`, or -1.
template <typename T>
int indexOf(const std::vector<T>& items, std::string_view name) {
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace normc::package
