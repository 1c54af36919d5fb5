// Decides which of several records is valid: the newest, and of choices the newest that no later record
// rejects. The result depends on the set of records, not on their order.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autotune/records/Record.h"

namespace normc::tune {

/// True if `a` has priority over `b`: it has a later stamp, or was written later in the same session. Records
/// without stamps are the oldest, and their order is unknown: among them a choice with the better interval
/// has priority, and a rejection.
bool newer(const Record& a, const Record& b);

/// Returns a text that differs for records of different circumstances: of another task, device or toolchain.
/// It begins with that of the task.
std::string circumstancesOf(const Record&);

/// Which choices of a set of records are valid. The records outlive it.
class Standing {
 public:
  explicit Standing(const std::vector<Record>& all);

  /// Returns why a choice must not be used, by records that are later than it: `was slower than the default
  /// when it was measured again`. Empty if the choice is valid. It is one of the records, or one of equal
  /// circumstances.
  std::string reasonRejected(const Record& choice) const;
  /// True if a newer valid choice of the same circumstances exists, which is used instead.
  bool isSuperseded(const Record& choice) const;

 private:
  struct Group {
    std::vector<const Record*> records;  ///< all of the same circumstances
    const Record* valid = nullptr;       ///< the newest valid choice; null if there is none
  };
  const Group* groupOf(const Record&) const;

  std::map<std::string, Group> groups_;
};

/// Returns the choices that count: of each task on each device the newest valid one, of any toolchain. They
/// are ordered by device, then by task. The records outlive the result.
std::vector<const Record*> standingChoices(const std::vector<Record>&);

}  // namespace normc::tune
