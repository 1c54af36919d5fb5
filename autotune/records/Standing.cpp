#include "autotune/records/Standing.h"

#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace normc::tune {
namespace {

bool isBad(const Record& r) {
  if (r.kind == RecordKind::Verify) return rejects(r.conclusion->verdict);
  return r.status != Status::Ok;
}

auto placeOf(const Record& r) {
  const double untold = r.stamp ? 0 : r.kind == RecordKind::Choice ? -r.conclusion->high : double(isBad(r));
  return std::tuple(r.stamp, untold, std::string_view(r.session), r.number);
}

}  // namespace

bool newer(const Record& a, const Record& b) { return placeOf(a) > placeOf(b); }

namespace {

/// Returns a text that differs for different tasks.
std::string keyOf(const Task& task) {
  return task.text() + "\n" + task.norm + "\n" + std::to_string(task.segments) + "x" +
         std::to_string(task.features);
}

}  // namespace

std::string circumstancesOf(const Record& r) {
  std::string text = keyOf(r.task) + "\n" + r.device.id();
  for (const auto& [tool, version] : r.toolchain) text += "\n" + tool + " " + version;
  return text;
}

namespace {

std::string reasonAmong(const std::vector<const Record*>& others, const Record& choice) {
  if (choice.conclusion->verdict == Verdict::Tie) return {};  // the default, which always exists
  const Record *trial = nullptr, *again = nullptr;            // the newest of each
  for (const Record* r : others) {
    if (r->kind == RecordKind::Choice || r->stamp < choice.stamp || r->schedule != choice.schedule ||
        r->generator != choice.generator)
      continue;
    // A refusal may have been for a missing program on this machine; a duplicate is no result of the code.
    if (r->kind == RecordKind::Trial && (r->status == Status::Refused || r->status == Status::Duplicate))
      continue;
    const Record*& last = r->kind == RecordKind::Verify ? again : trial;
    if (!last || newer(*r, *last)) last = r;
  }
  std::optional<Verdict> found;
  if (again && isBad(*again))
    found = again->conclusion->verdict;
  else if (trial && isBad(*trial))
    found = verdictOf(trial->status);
  if (!found) return {};
  const bool isVerb = found == Verdict::Crashed || found == Verdict::Hung;
  const std::string how = (isVerb ? "" : "was ") + std::string(name(*found)) +
                          (found == Verdict::Slower ? " than the default" : "");
  return how + " when it was measured again";
}

}  // namespace

Standing::Standing(const std::vector<Record>& all) {
  for (const Record& r : all) groups_[circumstancesOf(r)].records.push_back(&r);
  for (auto& [key, group] : groups_)
    for (const Record* r : group.records)
      if (r->kind == RecordKind::Choice && (!group.valid || newer(*r, *group.valid)) &&
          reasonAmong(group.records, *r).empty())
        group.valid = r;
}

const Standing::Group* Standing::groupOf(const Record& record) const {
  const auto at = groups_.find(circumstancesOf(record));
  return at == groups_.end() ? nullptr : &at->second;
}

std::string Standing::reasonRejected(const Record& choice) const {
  const Group* group = groupOf(choice);
  return group ? reasonAmong(group->records, choice) : "";
}

bool Standing::isSuperseded(const Record& choice) const {
  const Group* group = groupOf(choice);
  return group && group->valid && newer(*group->valid, choice);
}

std::vector<const Record*> standingChoices(const std::vector<Record>& all) {
  const Standing standing(all);
  std::map<std::pair<std::string, std::string>, const Record*> newest;
  for (const Record& r : all) {
    if (r.kind != RecordKind::Choice || !standing.reasonRejected(r).empty()) continue;
    const Record*& last = newest[{r.device.id(), keyOf(r.task)}];
    if (!last || newer(r, *last)) last = &r;
  }
  std::vector<const Record*> choices;
  for (const auto& [key, choice] : newest) choices.push_back(choice);
  return choices;
}

}  // namespace normc::tune
