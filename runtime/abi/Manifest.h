// The manifest of a package (docs/package-format.md) as values. The writer fills these structs, the runtime
// and the tools read them.
//
// A key of the manifest is a member here and a line in runtime/abi/ManifestKeys.h with its name, its legal
// values, and whether it is optional. Rules for combinations of keys are in runtime/package/ManifestRules.h.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/abi/Numbers.h"
#include "runtime/abi/Operands.h"
#include "runtime/abi/ProblemText.h"
#include "runtime/abi/Sizes.h"

namespace normc::package {

inline constexpr int64_t kSchema = 1;

/// Limits, so that a call can keep its tables on the stack.
inline constexpr size_t kMaxOperands = 64, kMaxPhases = 16, kMaxScalars = 64, kMaxFields = 32,
                        kMaxDimensions = 4;

enum class Role : uint8_t { Tensor, StateIn, StateOut, Saved, Workspace, Partial, Partials };
inline constexpr auto kRoles = {Role::Tensor,    Role::StateIn, Role::StateOut, Role::Saved,
                                Role::Workspace, Role::Partial, Role::Partials};
constexpr std::string_view name(Role role) {
  constexpr std::string_view names[] = {"tensor",    "state_in", "state_out", "saved",
                                        "workspace", "partial",  "partials"};
  return names[size_t(role)];
}

enum class Access : uint8_t {
  Read,
  Write,
  Both,    ///< only for workspace
  Zeroed,  ///< only for workspace, on CUDA: zero when the first phase of a call begins
};
inline constexpr auto kAccesses = {Access::Read, Access::Write, Access::Both, Access::Zeroed};
constexpr std::string_view name(Access access) {
  constexpr std::string_view names[] = {"read", "write", "both", "zeroed"};
  return names[size_t(access)];
}

enum class When : uint8_t { Always, Warmup };
inline constexpr auto kWhens = {When::Always, When::Warmup};
constexpr std::string_view name(When when) { return when == When::Always ? "always" : "warmup"; }

/// The roles of phases, for messages and reports.
inline const std::initializer_list<std::string_view> kPhaseRoles = {"statistics", "combine", "apply",
                                                                    "finish"};

struct Operand {
  Role role = Role::Tensor;
  std::string name;  ///< name of the tensor, the field or the workspace block
  DType type = DType::F32;
  Access access = Access::Read;
  Shape shape = {};  ///< of Workspace, and of a tensor whose shape the norm decides
  // Set by the reader, from `name` and `shape`.
  Tensor tensor = kX;                               ///< of Role::Tensor
  TensorShape tensorShape = TensorShape::Elements;  ///< of Role::Tensor
  size_t field = 0;  ///< of StateIn, StateOut, Saved, Partial and Partials: its index
  bool hasShape() const {
    if (role != Role::Tensor) return role == Role::Workspace;
    const std::optional<Tensor> found = tensorNamed(name);
    return found && infoOf(*found).shapeOf;
  }
  bool written() const { return access != Access::Read; }
  bool zeroed() const { return access == Access::Zeroed; }
};

/// Returns the factors of a tensor's shape in the manifest.
inline Shape factorsOf(TensorShape shape) {
  switch (shape) {
    case TensorShape::Elements:
      break;
    case TensorShape::PerFeature:
      return {kFeatures};
    case TensorShape::PerRow:
      return {kSegments, kRows};
    case TensorShape::PerSegment:
      return {kSegments, kFeatures};
    case TensorShape::PerBlock:  // of blocks or pairs, whose number depends on the kernel
    case TensorShape::PerPair:
      return {kSegments, kRows};
    case TensorShape::One:
      return {};
  }
  return {kSegments, kRows, kFeatures};
}

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
  int64_t threads = 1;  ///< of one block
  int64_t columns = 0;  ///< features of one block along the grid's y; 0: all
  int64_t cluster = 1;  ///< blocks per chunk
  /// Blocks per chunk without a cluster that synchronise; all blocks of the launch must be resident.
  int64_t cooperative = 1;
  int64_t shared = 0;      ///< dynamic shared memory, in bytes
  int64_t least = 0;       ///< least number of chunks launched; those beyond the phase's have no units
  bool dependent = false;  ///< may begin before the previous phase ends, and waits for it itself
};

/// The resources of a phase on a CUDA device, from ptxas; for messages and reports.
struct Resources {
  int64_t registers = 0;  ///< per thread
  int64_t shared = 0;     ///< static, per block, in bytes
  int64_t spills = 0;     ///< in bytes
  int64_t blocks = 0;     ///< blocks of this phase per multiprocessor
  int64_t clusters = 0;   ///< clusters per GPC; 0: no clusters
};

struct Phase {
  std::string symbol, role;
  Shape units;
  int64_t minUnits = 1, multiple = 1, maxChunks = 1;
  When when = When::Always;
  Shape weight = {};  ///< cost of a unit; empty: 1. A chunk costs at least `minUnits`
  /// Units of a chunk that suffice once there are chunks for many threads; absent: 1.
  std::optional<int64_t> enoughUnits = {};
  bool bySegment = false;                     ///< no chunk has units of two segments
  std::optional<int64_t> group = {};          ///< if there are many units, chunks are multiples of this
  std::optional<Launch> launch = {};          ///< CUDA only, and always present there
  std::optional<std::string> unaligned = {};  ///< CUDA: the entry for any alignment; absent: `symbol`
  std::optional<Resources> resources = {};    ///< present if ptxas made a cubin
  int64_t unitsEnough() const { return enoughUnits.value_or(1); }
  int64_t unitsOfGroup() const { return group.value_or(multiple); }
};

/// Numbers of X-sized transfers.
struct Traffic {
  int64_t reads = 0, writes = 0;
  std::optional<int64_t> leastReads = {};  ///< for a kernel that keeps what it reads on chip; absent: `reads`
  /// Rows of a column that are read `leastReads` times; the rows after them are read `reads` times.
  int64_t heldRows = 0;
  int64_t least() const { return leastReads.value_or(reads); }
  bool operator==(const Traffic&) const = default;
};

/// The sizes of calls that a kernel is offered for.
struct Limits {
  int64_t rowsMin = 0;                  ///< rows of all segments
  std::optional<int64_t> rowsMax = {};  ///< absent: no limit
  int64_t runMin = 0;                   ///< rows of one segment
  std::optional<int64_t> runMax = {};
  Range rows() const { return {rowsMin, rowsMax.value_or(kHuge)}; }
  Range run() const { return {runMin, runMax.value_or(kHuge)}; }
  bool serve(int64_t segments, int64_t rowsOfOne) const {
    return rows().has(multiply(segments, rowsOfOne)) && run().has(rowsOfOne);
  }
  /// Returns the order of selection: of two kernels that serve a call, the one with less width is chosen.
  /// Rows of all segments are compared first.
  std::pair<int64_t, int64_t> widths() const { return {rows().width(), run().width()}; }
  bool operator==(const Limits&) const = default;
};

struct Kernel {
  std::string problem;  ///< canonical text
  ProblemText parts;    ///< the parsed text; `norm` is set by the reader
  Limits limits = {};
  size_t norm = 0, blob = 0;
  std::optional<size_t> cubin = {};  ///< CUDA: blob of machine code; `blob` is PTX
  int64_t alignment = 0;  ///< CUDA: required by the phases' `symbol`, in bytes; 0: the size of an element
  /// Divides every legal number of features, because all groups have the same size.
  int64_t featuresMultiple = 1;
  int64_t block = 0;   ///< features of a block of codes, which has one scale; 0: all
  int64_t runs = 0;    ///< runs of features in which pairs are turned; 0: none are
  int64_t turned = 0;  ///< features of a run that are turned; 0: all
  std::string device = "cpu", isa;
  std::string core = {};  ///< the core that the schedule is for (CpuCore.h); empty: any
  std::string generator, schedule, origin = "default";
  std::vector<std::string> selection = {};  ///< how the schedule was chosen, a line for each rung
  std::vector<Operand> operands;
  /// The inputs of a backward that a call may give although the kernel does not read them. Older packages
  /// lack the list; the reader sets it.
  std::optional<std::vector<std::string>> ignored = {};
  /// A tensor that calls do not take, because it equals another one: "dresidual" is "dx".
  std::map<std::string, std::string> same = {};
  std::vector<Scalar> scalars;
  std::vector<Field> state, saved;
  std::vector<Field> partial;  ///< of the partials that the entry writes or reads; packed
  std::vector<Phase> phases;
  Traffic traffic;
  std::optional<Traffic> warmupTraffic = {};

  bool onCuda() const { return device == "cuda"; }
  /// Returns the instruction set, and the core if there is one: "x86-64-v4:zen4".
  std::string target() const { return core.empty() ? isa : isa + ":" + core; }
  bool divides(int64_t features) const { return features % featuresMultiple == 0; }
  bool serves(const Sizes& sizes) const {
    return limits.serve(sizes.segments, sizes.rows) && divides(sizes.features);
  }
  /// Returns the name of the strategy, the first word of the schedule.
  std::string strategy() const { return schedule.substr(0, schedule.find(',')); }
  /// Returns how many scales of codes a row has.
  int64_t blocks(int64_t features) const { return block ? features / block : 1; }
  /// Returns how many pairs of a run are turned. Only if there are runs.
  int64_t pairs(int64_t features) const { return (turned ? turned : features / runs) / 2; }
};

struct Blob {
  std::string sha256;              ///< 64 hexadecimal digits
  uint64_t offset = 0, bytes = 0;  ///< position and size in the file
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

/// Returns the index of the element called `name`, or -1.
template <typename T>
int indexOf(const std::vector<T>& items, std::string_view name) {
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace normc::package
