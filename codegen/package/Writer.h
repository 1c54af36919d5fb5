// Writes a package: the other half of docs/package-format.md.
//
// The structs below are the manifest in C++, in the words of that page; they hold
// text and numbers only, so this library needs neither LLVM nor the runtime.
// Norms and blobs that are equal are stored once.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dsl/Numbers.h"
#include "dsl/Result.h"

namespace normc::package {

/// A number, or "segments", "rows", "features", "chunks.P".
using Factor = std::variant<int64_t, std::string>;
using Shape = std::vector<Factor>;

struct Operand {
  std::string role;  ///< tensor, state_in, state_out, saved, workspace
  std::string name;
  std::string type;    ///< f32, f64, bf16, f16, i64, u8
  std::string access;  ///< read, write; of workspace both, or zeroed: it is, when a call's first phase begins
  Shape shape;         ///< workspace only
};

struct Scalar {
  std::string name;
  double value = 0;
  NumberRange legal = {};
};

struct Field {
  std::string name;
  std::string type;  ///< f32, f64, i64
  Shape shape;
  double init = 0;
};

/// How a phase is launched on a CUDA device (runtime/abi/cuda.h).
struct Launch {
  int64_t threads = 0;  ///< of a block
  int64_t columns = 0;  ///< features of a block along the grid's y; 0: all of them
  int64_t cluster = 1;  ///< blocks of a chunk
  int64_t cooperative = 1;  ///< likewise, no cluster, that wait for each other: all are there at once
  int64_t shared = 0;   ///< dynamic shared memory, in bytes
  int64_t least = 0;    ///< chunks that are launched at least; one beyond the phase's has no units
  bool dependent = false;  ///< begins while the phase before it runs, and waits for it by itself
};

/// What a phase takes of a CUDA device, as ptxas says; for people.
struct Resources {
  int64_t registers = 0;  ///< of a thread
  int64_t shared = 0;     ///< static, of a block, in bytes
  int64_t spills = 0;     ///< bytes
  int64_t blocks = 0;     ///< of this phase, that one multiprocessor holds at once
  int64_t clusters = 0;   ///< of its blocks, that the multiprocessors of a GPC hold at once; 0: they are launched singly
};

struct Phase {
  std::string symbol;
  std::string role;  ///< statistics, combine, apply, finish
  Shape units;
  int64_t minUnits = 1, multiple = 1, maxChunks = 1;
  std::string when = "always";                ///< or warmup
  Shape weight = {};                          ///< what a unit costs, of which a chunk has `minUnits` at least; empty: 1
  std::optional<int64_t> enoughUnits = {};    ///< of a chunk, once there are chunks for many threads; absent: `minUnits`
  std::optional<int64_t> group = {};          ///< the multiple that chunks are of many units; absent: `multiple`
  std::optional<Launch> launch = {};          ///< on a CUDA device
  std::optional<std::string> unaligned = {};  ///< its entry for any alignment; absent: `symbol` is
  std::optional<Resources> resources = {};    ///< where there is a cubin
};

/// X-sized transfers.
struct Traffic {
  int64_t reads = 0, writes = 0;
  std::optional<int64_t> leastReads = {};  ///< of a kernel that keeps what it reads on chip; absent: the same
  int64_t heldRows = 0;                    ///< of a column: read so seldom, those after them `reads` times
  bool operator==(const Traffic&) const = default;
};

/// The sizes of calls that a kernel is offered for.
struct Limits {
  int64_t rowsMin = 0;             ///< of all segments
  std::optional<int64_t> rowsMax;  ///< absent: no limit
  int64_t runMin = 0;              ///< of one segment
  std::optional<int64_t> runMax;
  bool serve(int64_t segments, int64_t rows) const;
  /// Whether they come first where both serve a call, as the runtime selects.
  bool narrowerThan(const Limits&) const;
  bool operator==(const Limits&) const = default;
};

struct Kernel {
  std::string problem;  ///< canonical text
  size_t norm = 0;      ///< what addNorm returned
  std::string entry, data, params, layout;
  bool mask = false, segmented = false;
  std::optional<int64_t> features;
  int64_t featuresMultiple = 1;  ///< of a kernel for any number of features: what that number is a multiple of
  std::map<std::string, int64_t> bindings;
  Limits limits;
  size_t blob = 0;                 ///< what addBlob returned
  std::optional<size_t> cubin;     ///< cuda: likewise, of the same kernel compiled further
  int64_t alignment = 0;           ///< cuda: of the phases' `symbol`, in bytes; 0: an element's
  std::string device = "cpu", isa;
  std::string generator, schedule, origin = "default";
  std::vector<std::string> selection = {};  ///< how the schedule was chosen, a line for each rung
  std::vector<Operand> operands;
  std::vector<Scalar> scalars;
  std::vector<Field> state, saved;
  std::vector<Phase> phases;
  Traffic traffic;
  std::optional<Traffic> warmupTraffic;
};

class Writer {
 public:
  /// Who made the package: {"normc": "0.1.0", "llvm": "22.1.8"}.
  explicit Writer(std::map<std::string, std::string> producer) : producer_(std::move(producer)) {}

  /// `hash` is the structural hash, `text` the canonical text of the spec.
  size_t addNorm(std::string name, std::string hash, std::string text);
  /// Kind "elf": a shared object. "ptx": text, with or without a zero at its end. "cubin": what ptxas made of
  /// it.
  size_t addBlob(std::string bytes, std::string kind, std::string isa);
  void addKernel(Kernel kernel) { kernels_.push_back(std::move(kernel)); }

  /// The whole file.
  std::string bytes() const;

  /// Writes it under a temporary name in the same folder and renames it: on failure there is no new
  /// file, and an old one is as it was. Returns the number of bytes.
  Result<int64_t> write(const std::string& path) const;

 private:
  struct Norm {
    std::string name, hash, text;
    bool operator==(const Norm&) const = default;
  };
  struct Blob {
    std::string bytes, sha256, kind, isa;
    uint64_t offset = 0;
  };

  std::map<std::string, std::string> producer_;
  std::vector<Norm> norms_;
  std::vector<Blob> blobs_;
  std::vector<Kernel> kernels_;
};

/// Writes all bytes to an open file, in as many calls as that takes. False if one fails; errno says why.
bool writeAll(int file, std::string_view bytes);

}  // namespace normc::package
