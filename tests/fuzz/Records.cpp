// Records of a tuning database: a line is a record or is counted as what it is, whatever stands around it.
#include <algorithm>

#include "autotune/records/Database.h"
#include "autotune/records/Standing.h"
#include "autotune/tune/Choose.h"
#include "autotune/tune/Hints.h"
#include "tests/fuzz/Lines.h"
#include "tests/fuzz/Target.h"

namespace normc::fuzz {
namespace {

using Json = nlohmann::json;

bool isBlank(const std::string& line) { return line.find_first_not_of(" \t\r") == line.npos; }

void checkLine(const std::string& text) {
  const tune::Line line = tune::readLine(text);
  if (!line.record) return;
  require(!line.id.empty(), "a record has an id");
  const std::string written = tune::lineOf(*line.record);
  const tune::Line again = tune::readLine(written);
  require(again.record.has_value(), "a record that was read is written as one: " + written);
  require(*again.record == *line.record, "a record is read as it was written: " + written);
  require(tune::lineOf(*again.record) == written, "a record is written the same: " + written);
}

tune::Database databaseOfAll(const std::vector<std::string>& lines) {
  tune::Database database;
  for (const std::string& line : lines) database.add(line + "\n");
  return database;
}

/// Asks for a schedule for the task of a choice, as compiling and tuning do.
void checkChoice(const tune::Record& choice, const tune::Database& database) {
  const tune::Site site{choice.device, choice.toolchain};
  const tune::Standing standing(database.records);
  const tune::Pick pick =
      tune::pickFor(choice.task, site, database, standing, [](const tune::Record&) { return true; });
  require(!pick.origin.empty() && !pick.rungs.empty(), "a schedule has an origin");
  require(!pick.record || pick.record->kind == tune::RecordKind::Choice, "what is picked is a choice");
  const bool stands = standing.reasonRejected(choice).empty();
  require(!stands || pick.record || pick.origin.starts_with("default, tied"),
          "a choice that stands is found");
  require(!tune::tunedSizes(database, choice.task.problem, choice.task.norm, choice.device).empty(),
          "the sizes of a choice are known");
  const tune::Landscape landscape(
      {{choice.generator, choice.schedule + "0", 1, {0, 0}}, {choice.generator, choice.schedule, 2, {0, 1}}},
      0);
  tune::Setting setting;
  setting.task = choice.task, setting.device = choice.device, setting.toolchain = choice.toolchain;
  tune::SearchOptions options;
  tune::addHints(landscape, database.records, setting, options);
  for (const size_t hint : options.hints) require(hint < landscape.size(), "a hint is a point");
}

}  // namespace

void records(std::string_view text) {
  std::vector<std::string> lines = linesOf(text);
  std::string whole;
  int64_t filled = 0;
  for (std::string& line : lines) {
    line = filledIn(line);
    checkLine(line);
    whole += line + "\n";
    filled += !isBlank(line);
  }
  tune::Database database;
  database.add(whole);
  const tune::Counts& counts = database.counts;
  require(counts.records + counts.duplicates + counts.damaged + counts.newer == filled,
          "each line is counted once: " + counts.text());
  require(counts.records == int64_t(database.records.size()) && !counts.torn,
          "records are those that are kept");
  const std::string merged = database.text();
  std::reverse(lines.begin(), lines.end());
  require(databaseOfAll(lines).text() == merged, "the order of lines does not matter");
  tune::Database again;
  again.add(merged);
  require(again.text() == merged, "what was merged is read as it is");
  require(again.missing(database).empty() && database.missing(again).empty(), "nothing is lost by merging");
  again.add(std::move(database));
  require(again.text() == merged, "merging what is there changes nothing");
  const tune::Standing standing(again.records);
  size_t choices = 0;
  for (const tune::Record& record : again.records) {
    require(!tune::newer(record, record), "no record is newer than itself");
    if (record.kind == tune::RecordKind::Choice) {
      (void)standing.reasonRejected(record);
      (void)standing.isSuperseded(record);
      if (++choices <= 4) checkChoice(record, again);
    }
    require(!record.task.text().empty() && record.device.id().size() == 16, "a record names task and device");
  }
  if (const auto named = tune::databaseOf(whole, "input.jsonl"); !named)
    require(!named.errors().front().message.empty(), "a file of something else is refused with a reason");
}

std::vector<std::string> seedsOfRecords() {
  tune::Record r;
  r.task = {
      *parseProblemText("layer_norm:forward@f32[*x1024]"), "0123456789abcdef", 1, 2048, 1024, 2, "warm"};
  r.device = {"cpu", "x86-64-v3", "a processor", {{"cores", 2}, {"last_cache", 33554432}}};
  r.toolchain = {{"normc", "0.1.0"}, {"llvm", "22.1.8"}};
  r.generator = "mlir", r.schedule = "resident,vector=8,rows=4", r.object = "ab";
  r.trials = 22, r.worst = 0.25, r.stage = "screen";
  r.samples = {1.5e-4, 0.1}, r.reference = {2e-4, 0.2};
  r.session = "s", r.stamp = 5;
  const auto withoutId = [](const tune::Record& record) {
    Json json = Json::parse(tune::lineOf(record));
    json["id"] = "?";
    return json.dump() + "\n";
  };
  std::vector<std::string> seeds = {withoutId(r)};
  tune::Record choice = r;
  choice.kind = tune::RecordKind::Choice,
  choice.conclusion = tune::Conclusion{tune::Verdict::Won, 0.8, 0.75, 0.85}, choice.number = 1;
  seeds.push_back(withoutId(r) + withoutId(choice));
  tune::Record verify = choice;
  verify.kind = tune::RecordKind::Verify, verify.conclusion->verdict = tune::Verdict::Slower,
  verify.stamp = 6;
  seeds.push_back(withoutId(choice) + withoutId(verify) + withoutId(choice) +
                  "\n{\"schema\": 3}\nno record\n");
  tune::Record wrong = r;
  wrong.status = tune::Status::Wrong, wrong.reason = "y: nan", wrong.samples = wrong.reference = {};
  seeds.push_back(withoutId(wrong));
  wrong.status = tune::Status::Duplicate, wrong.reason = "the same code as another";
  seeds.push_back(withoutId(wrong) + tune::lineOf(r));
  return seeds;
}

}  // namespace normc::fuzz
