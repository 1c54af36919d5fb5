#include "autotune/records/Record.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autotune/records/ParseJson.h"
#include "dsl/Nearest.h"
#include "runtime/abi/Sizes.h"
#include "runtime/package/Sha256.h"

namespace normc::tune {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxLine = 1 << 20, kMaxSamples = 4096;
constexpr std::array<std::string_view, 6> kStatusNames = {"ok",      "refused", "wrong",
                                                          "crashed", "hung",    "duplicate"};
constexpr std::array<std::string_view, 3> kKindNames = {"trial", "choice", "verify"};
constexpr std::array<std::string_view, 7> kVerdictNames = {"won",   "tie",     "slower", "refused",
                                                           "wrong", "crashed", "hung"};
/// Schema 1 has no status for duplicates: they were refusals with this reason, followed by the other
/// schedule.
constexpr std::string_view kDuplicateOfSchema1 = "the same code as ";

std::string hashOf(const std::string& text, size_t digits) { return runtime::sha256(text).substr(0, digits); }

/// Returns the reason, cut so that the line stays short enough to be read. Each byte that is not UTF-8 is
/// written as three.
std::string shortened(const std::string& reason) {
  constexpr size_t kMost = kMostText / 4;
  if (reason.size() <= kMost) return reason;
  size_t end = kMost;
  while (end > 0 && (reason[end] & 0xc0) == 0x80) --end;  // not within a character
  return reason.substr(0, end) + "\u2026";
}

/// The reason why a line is unusable; caught by readLine.
struct Unusable {
  Flaw flaw = Flaw::Damaged;
};

std::string textAt(const Json& json, const char* key) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_string()) throw Unusable();
  std::string text = at->get<std::string>();
  if (text.size() > kMostText) throw Unusable();
  return text;
}

/// The same for a name. Reports print it, so it has no character that a terminal obeys.
std::string nameAt(const Json& json, const char* key) {
  std::string text = textAt(json, key);
  if (std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; })) throw Unusable();
  return text;
}

/// The same for an enumerator.
template <typename Enum, size_t count>
Enum enumAt(const Json& json, const char* key, const std::array<std::string_view, count>& names) {
  const auto at = std::ranges::find(names, textAt(json, key));
  if (at == names.end()) throw Unusable();
  return Enum(at - names.begin());
}

int64_t wholeAt(const Json& json, const char* key, int64_t least) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_number_integer()) throw Unusable();
  const auto value = at->get<int64_t>();
  if (value < least || value > kMostWhole) throw Unusable();
  return value;
}

double numberAt(const Json& json, const char* key) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_number()) throw Unusable();
  return at->get<double>();
}

const Json& objectAt(const Json& json, const char* key) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_object() || at->size() > kMostEntries) throw Unusable();
  return *at;
}

Samples samplesAt(const Json& json, const char* key) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_array() || at->size() > kMaxSamples) throw Unusable();
  Samples samples;
  for (const Json& each : *at) {
    if (!each.is_number()) throw Unusable();
    samples.push_back(each.get<double>());
    if (!(samples.back() > 0) || !std::isfinite(samples.back())) throw Unusable();
  }
  return samples;
}

ProblemText problemAt(const Json& json, const char* key) {
  const std::string text = textAt(json, key);
  std::optional<ProblemText> problem = parseProblemText(text);
  if (!problem || problem->text() != text) throw Unusable{Flaw::NewerSchema};
  return *std::move(problem);
}

Json toJson(const Record& r) {
  Json json = {{"schema", r.status == Status::Duplicate ? kSchema : 1}, {"kind", name(r.kind)}};
  json["task"] = {{"problem", r.task.problem.text()}, {"norm", r.task.norm},
                  {"segments", r.task.segments},      {"rows", r.task.rows},
                  {"features", r.task.features},      {"threads", r.task.threads},
                  {"policy", r.task.policy}};
  json["device"] = {
      {"kind", r.device.kind}, {"arch", r.device.arch}, {"name", r.device.name}, {"facts", r.device.facts}};
  json["toolchain"] = r.toolchain;
  json["generator"] = r.generator;
  json["schedule"] = r.schedule;
  json["object"] = r.object;
  json["status"] = name(r.status);
  if (!r.reason.empty()) json["reason"] = shortened(r.reason);
  json["gate"] = {{"trials", r.trials}, {"worst", r.worst}};
  json["stage"] = r.stage;
  json["samples"] = r.samples;
  json["reference"] = r.reference;
  if (r.screenedRows) json["screened_rows"] = r.screenedRows;
  if (r.conclusion)
    json["conclusion"] = {{"verdict", name(r.conclusion->verdict)},
                          {"ratio", r.conclusion->ratio},
                          {"low", r.conclusion->low},
                          {"high", r.conclusion->high}};
  json["session"] = r.session;
  json["number"] = r.number;
  if (r.stamp) json["stamp"] = r.stamp;
  return json;
}

bool isConclusive(const Record& r) {
  if (r.kind == RecordKind::Trial) return true;
  if (!r.conclusion || !(r.conclusion->ratio > 0)) return false;
  if (r.kind == RecordKind::Verify) return true;
  // Readers take the median of a choice's samples.
  return !r.samples.empty() && !rejects(r.conclusion->verdict);
}

Record fromJson(const Json& json) {
  Record r;
  r.kind = enumAt<RecordKind>(json, "kind", kKindNames);
  const Json& task = objectAt(json, "task");
  r.task = {problemAt(task, "problem"), nameAt(task, "norm"),         wholeAt(task, "segments", 0),
            wholeAt(task, "rows", 0),   wholeAt(task, "features", 1), wholeAt(task, "threads", 1),
            nameAt(task, "policy")};
  // Readers multiply the sizes.
  if (package::multiply(package::multiply(r.task.segments, r.task.rows), r.task.features) > kMostWhole)
    throw Unusable();
  const Json& device = objectAt(json, "device");
  r.device = {nameAt(device, "kind"), nameAt(device, "arch"), nameAt(device, "name"), {}};
  const Json& facts = objectAt(device, "facts");
  for (const auto& [key, value] : facts.items()) r.device.facts[key] = wholeAt(facts, key.c_str(), 0);
  const Json& toolchain = objectAt(json, "toolchain");
  for (const auto& [key, value] : toolchain.items()) r.toolchain[key] = nameAt(toolchain, key.c_str());
  r.generator = nameAt(json, "generator");
  r.schedule = nameAt(json, "schedule");
  r.object = textAt(json, "object");
  r.status = enumAt<Status>(json, "status", kStatusNames);
  if (json.contains("reason")) r.reason = textAt(json, "reason");
  if (r.status == Status::Refused && r.reason.starts_with(kDuplicateOfSchema1)) r.status = Status::Duplicate;
  const Json& gate = objectAt(json, "gate");
  r.trials = wholeAt(gate, "trials", 0);
  r.worst = numberAt(gate, "worst");
  r.stage = nameAt(json, "stage");
  r.samples = samplesAt(json, "samples");
  r.reference = samplesAt(json, "reference");
  if (r.samples.size() != r.reference.size()) throw Unusable();
  if (json.contains("screened_rows")) r.screenedRows = wholeAt(json, "screened_rows", 1);
  if (json.contains("conclusion")) {
    const Json& c = objectAt(json, "conclusion");
    r.conclusion = {enumAt<Verdict>(c, "verdict", kVerdictNames), numberAt(c, "ratio"), numberAt(c, "low"),
                    numberAt(c, "high")};
  }
  if (!isConclusive(r)) throw Unusable();
  r.session = textAt(json, "session");
  r.number = wholeAt(json, "number", 0);
  if (json.contains("stamp")) r.stamp = wholeAt(json, "stamp", 1);
  return r;
}

}  // namespace

std::string_view name(Status status) { return kStatusNames[size_t(status)]; }
std::string_view name(RecordKind kind) { return kKindNames[size_t(kind)]; }
std::string_view name(Verdict verdict) { return kVerdictNames[size_t(verdict)]; }

Verdict verdictOf(Status failure) {
  return Verdict(std::ranges::find(kVerdictNames, name(failure)) - kVerdictNames.begin());
}

std::string Task::text() const {
  std::string result = problem.text() + ", ";
  if (segments > 1) result += counted(segments, "segment") + " of ";
  result += counted(rows, "row");
  if (problem.segmented || !problem.features) result += " of " + counted(features, "feature");
  return result + ", " + (threads ? counted(threads, "thread") : "all threads") + ", " + policy;
}

std::string Device::id() const {
  return hashOf(Json({{"kind", kind}, {"arch", arch}, {"name", name}, {"facts", facts}})
                    .dump(-1, ' ', true, Json::error_handler_t::replace),
                16);
}

std::string idOf(const Json& json) {
  return hashOf(json.dump(-1, ' ', true, Json::error_handler_t::replace), 32);
}

std::string lineOf(const Record& record) {
  // Parsed from the written text, so that the hash is that which a reader computes.
  Json json = Json::parse(toJson(record).dump(-1, ' ', true, Json::error_handler_t::replace));
  json["id"] = idOf(json);
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Line readLine(std::string_view text) {
  Line line;
  if (text.size() > kMaxLine) return line;
  Json json = parseJson(text);
  if (!json.is_object()) return line;
  try {
    const int64_t schema = wholeAt(json, "schema", 1);
    if (schema > kSchema) {
      line.flaw = Flaw::NewerSchema;
      return line;
    }
    const std::string id = textAt(json, "id");
    json.erase("id");
    if (id != idOf(json)) return line;
    line.record = fromJson(json);
    line.id = id;
  } catch (const Unusable& unusable) {
    line.flaw = unusable.flaw;
  } catch (const Json::exception&) {  // a number exceeds its type
  }
  return line;
}

}  // namespace normc::tune
