// One measurement, as one line of JSON: everything that has to be known to trust it,
// to repeat it, and to decide by it (docs/tuning.md has the schema).
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
inline constexpr int64_t kMostWhole = int64_t(1) << 50;  ///< of any count in a record

/// What was tuned: the circumstances that decide which schedule is best.
struct Task {
  ProblemText problem;  ///< rows open: layer_norm:forward@f32[*x1024]
  std::string norm;     ///< structural hash of the spec: two norms of one name differ here
  int64_t segments = 1, rows = 1, features = 1, threads = 1;
  std::string policy;  ///< warm, cold, pipeline

  std::string text() const;  ///< `layer_norm:forward@f32[*x1024], 2048 rows, 2 threads, warm`
  bool operator==(const Task&) const = default;
};

/// Where: what makes one machine's times those of another, or not.
struct Device {
  std::string kind;                      ///< cpu, cuda
  std::string arch;                      ///< x86-64-v4, sm_90: what code is compiled for
  std::string name;                      ///< the model, as the system names it
  std::map<std::string, int64_t> facts;  ///< cores, caches, multiprocessors

  std::string id() const;  ///< 16 digits of a hash of all of it
  bool operator==(const Device&) const = default;
};

/// Duplicate: the code is that of another candidate, which was tried instead. It is no failure.
enum class Status { Ok, Refused, Wrong, Crashed, Hung, Duplicate };
std::string_view name(Status);

/// What a race concluded; of a record of kind `choice` or `verify`.
struct Conclusion {
  std::string verdict;  ///< `won`, or `tie`: the default stays, whoever was in front; of `verify` also
                        ///< `slower`, or a status
  double ratio = 1, low = 1, high = 1;  ///< of the chosen to the default, and its 95 % interval
  bool operator==(const Conclusion&) const = default;
};

struct Record {
  std::string kind =
      "trial";  ///< `trial`: one candidate. `choice`: what a tuning decided. `verify`: a choice again
  Task task;
  Device device;
  std::map<std::string, std::string> toolchain;  ///< {"normc": "0.1.0", "llvm": "22.1.8"}
  std::string generator, schedule;
  std::string object;  ///< SHA-256 of the kernel's code
  Status status = Status::Ok;
  std::string reason;  ///< unless Ok: what was seen, of which a line holds the first 4 KiB
  int64_t trials = 0;  ///< that the gate made
  double worst = 0;    ///< largest error over its bound, of the trials that passed
  std::string stage;   ///< screen, race, verify
  Samples samples;     ///< seconds of one call
  Samples reference;   ///< of the default, round by round beside them
  std::optional<Conclusion> conclusion;
  std::string session;  ///< random: two equal measurements of two runs are two
  int64_t number = 0;   ///< counts within the session
  int64_t stamp = 0;    ///< the later, the larger; 0: of a normc that wrote none

  bool operator==(const Record&) const = default;
};

/// The line, without its end. It carries a hash of the rest as `id`, by which lines are merged and
/// damage is found.
std::string lineOf(const Record&);
/// The id of a line that lineOf made, or of one with keys that only a newer normc knows.
std::string idOf(const nlohmann::json& withoutId);

/// Why a line is none of ours. A problem that this version cannot read is of a newer schema.
enum class Flaw { Damaged, NewerSchema };
struct Line {
  std::optional<Record> record;
  std::string id;
  Flaw flaw = Flaw::Damaged;  ///< where there is no record
};
/// Never throws, whatever the text is.
Line readLine(std::string_view text);

}  // namespace normc::tune
