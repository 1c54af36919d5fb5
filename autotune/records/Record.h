// One measurement as one line of JSON, with all data that is needed to trust it, to repeat it, and to decide
// by it (docs/tuning.md has the schema).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "autotune/measure/Stats.h"
#include "dsl/Result.h"
#include "runtime/abi/ProblemText.h"

namespace normc::tune {

using measure::Samples;

inline constexpr int kSchema = 2;  ///< schema of a duplicate; other records have schema 1
inline constexpr int64_t kMostWhole = int64_t(1) << 50;  ///< largest count in a record
inline constexpr size_t kMostText = 1 << 14;             ///< most bytes of a text in a record
inline constexpr size_t kMostEntries = 64;               ///< of a device's facts, and of a toolchain

/// The subject of a tuning: all conditions that decide which schedule is best.
struct Task {
  ProblemText problem;  ///< with open rows: layer_norm:forward@f32[*x1024]
  std::string norm;     ///< structural hash of the spec: it distinguishes norms of one name
  int64_t segments = 1, rows = 1, features = 1, threads = 1;
  std::string policy;  ///< warm, cold, pipeline

  int64_t totalRows() const { return segments * rows; }
  std::string text() const;  ///< `layer_norm:forward@f32[*x1024], 2048 rows, 2 threads, warm`
  bool operator==(const Task&) const = default;
};

/// The machine: the properties that make times comparable.
struct Device {
  std::string kind;                      ///< cpu, cuda
  std::string arch;                      ///< the architecture that code is compiled for: x86-64-v4, sm_90
  std::string name;                      ///< the model, as the system reports it
  std::map<std::string, int64_t> facts;  ///< cores, caches, multiprocessors

  std::string text() const { return name + ", " + arch; }
  std::string id() const;  ///< 16 digits of the hash of all members
  bool operator==(const Device&) const = default;
};

/// Duplicate: another candidate has the same code and was tried instead. It is not a failure.
enum class Status { Ok, Refused, Wrong, Crashed, Hung, Duplicate };
std::string_view name(Status);
constexpr bool isFailure(Status status) { return status != Status::Ok && status != Status::Duplicate; }

/// Trial: one candidate. Choice: the result of a tuning. Verify: a choice measured again.
enum class RecordKind { Trial, Choice, Verify };
std::string_view name(RecordKind);

/// Tie: the default is kept. Those behind it are verdicts of Verify alone: slower than the default, or the
/// status of a failure.
enum class Verdict { Won, Tie, Slower, Refused, Wrong, Crashed, Hung };
std::string_view name(Verdict);
/// True if the choice must not be used any more.
constexpr bool rejects(Verdict verdict) { return verdict > Verdict::Tie; }
/// Returns the verdict on a choice that fails with this status; `isFailure(status)` holds.
Verdict verdictOf(Status);

/// The conclusion of a race, in a record of kind Choice or Verify.
struct Conclusion {
  Verdict verdict = Verdict::Tie;
  /// Time of the chosen over that of the default, and its 95 % interval.
  double ratio = 1, low = 1, high = 1;
  bool operator==(const Conclusion&) const = default;
};

struct Record {
  RecordKind kind = RecordKind::Trial;
  Task task;
  Device device;
  std::map<std::string, std::string> toolchain;  ///< {"normc": "0.1.0", "llvm": "22.1.8"}
  std::string generator, schedule;
  std::string object;  ///< SHA-256 of the kernel's code
  Status status = Status::Ok;
  std::string reason;        ///< empty if Ok, else the observed failure; a line holds its first 4 KiB
  int64_t trials = 0;        ///< trials that the gate ran
  double worst = 0;          ///< largest error relative to its bound, over the passed trials
  std::string stage;         ///< screen, race
  Samples samples;           ///< seconds of one call
  Samples reference;         ///< seconds of one call of the default, in the same rounds
  int64_t screenedRows = 0;  ///< rows of these calls, if fewer than those of the task; else 0
  std::optional<Conclusion> conclusion;
  std::string session;  ///< random, so that equal measurements of two runs differ
  int64_t number = 0;   ///< position within the session
  int64_t stamp = 0;    ///< increases with time; 0: written by a version without stamps

  bool operator==(const Record&) const = default;
};

/// Returns the line without its end. Its `id` is a hash of the other members; it identifies equal lines and
/// detects damage.
std::string lineOf(const Record&);
/// Returns the id of a line of lineOf, or of one with keys that only a newer version knows.
std::string idOf(const nlohmann::json& withoutId);

/// The reason why a line is not a record. A problem that this version cannot read counts as a newer schema.
enum class Flaw { Damaged, NewerSchema };
struct Line {
  std::optional<Record> record;
  std::string id;
  Flaw flaw = Flaw::Damaged;  ///< valid if there is no record
};
/// Parses a line. Never throws.
Line readLine(std::string_view text);

}  // namespace normc::tune
