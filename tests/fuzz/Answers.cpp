// Answers of a worker, which a candidate's code may have written: the host takes them or says what is wrong,
// and what it records is read again. A small program gives the answers (replayWorker.cpp).
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "autotune/records/Database.h"
#include "autotune/tune/LiveLab.h"
#include "tests/fuzz/Folder.h"
#include "tests/fuzz/Target.h"

namespace normc::fuzz {
namespace {

tune::Setting setting() {
  tune::Setting setting;
  setting.task = {*parseProblemText("layer_norm:forward@f32[*x24]"), "hash", 1, 50, 24, 1, "warm"};
  setting.device = {"cpu", "x86-64-v3", "a processor", {}};
  setting.toolchain = {{"normc", "test"}};
  setting.session = "s", setting.stamp = 1;
  setting.patience = 5, setting.quietPatience = 0;
  return setting;
}

/// Screens and races two candidates, and records what comes out.
void measure(tune::Journal& journal, bool decides) {
  const tune::Landscape landscape({{"hand", "one", 1, {0, 0}}, {"hand", "two", 2, {0, 1}}}, 0);
  const tune::Setting set = setting();
  tune::LiveLab::Callbacks callbacks;
  callbacks.make = [](size_t point) { return tune::BuiltCandidate{"p.npk", std::to_string(point)}; };
  callbacks.worker = NORMC_REPLAY_WORKER, callbacks.journal = &journal;
  tune::LiveLab lab(landscape, set, callbacks, {});
  tune::Outcome outcome;
  outcome.screened = lab.screen({0, 1});
  require(outcome.screened.size() == 2, "each candidate has a result");
  for (const tune::Screened& one : outcome.screened) {
    if (one.status != tune::Status::Ok) {
      require(!one.reason.empty(), "a failure has a reason");
      continue;
    }
    require(!one.samples.empty() && one.samples.size() == one.reference.size(), "a candidate has its times");
    for (const double each : one.samples)
      require(each > 0 && std::isfinite(each), "a time is a number above 0");
  }
  if (outcome.screened[0].status != tune::Status::Ok) return;
  std::vector<tune::Samples> raced = lab.race({0, 1}, 3);
  require(raced.size() == 2, "each candidate has its times");
  if (raced[0].empty()) return;
  outcome.racers = {{0, raced[0]}};
  if (raced[1].size() == raced[0].size()) outcome.racers.push_back({1, raced[1]});
  // A decision takes longer than all else, so not every input makes one.
  outcome.decision = {0, true, {1, 1, 1}, 0, {1, 1, 1}};
  if (decides) outcome.decision = tune::decide(landscape, outcome.racers);
  const double copy = lab.copySeconds({});
  require(copy >= 0 && std::isfinite(copy), "the time of a copy is a number");
  lab.conclude(outcome);
}

}  // namespace

void answers(std::string_view input) {
  static const bool named = setenv("NORMC_FUZZ_ANSWERS", (folder() + "/answers").c_str(), 1) == 0;
  require(named, "the environment takes a variable");
  writeFile("answers", input);
  const std::string path = writeFile("journal.jsonl", "");
  {
    tune::Journal journal(path);
    try {
      measure(journal, input.size() % 8 == 0);
    } catch (const Fault&) {
      throw;
    } catch (const std::runtime_error& error) {
      require(*error.what() != 0, "a search that ends has a reason");
    }
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  tune::Database database;
  database.add(text);
  require(database.counts.damaged == 0 && !database.counts.torn && database.counts.newer == 0,
          "what is recorded is read again: " + database.counts.text() + "\n" + text);
}

std::vector<std::string> seedsOfAnswers() {
  const std::string start = "task {\"protocol\":1}\nload {}\n";
  const std::string gate = R"(gate {"trials":3,"worst":0.5,"failure":""})"
                           "\n";
  const std::string sample =
      R"(sample {"samples":$1e-4,"disturbed":0,"accepted":0,"loops":[1e-3,2e-3],"patience":0})"
      "\n";
  return {start + gate + sample + "copy {\"seconds\":1e-4}\n",
          start + R"(gate {"trials":1,"worst":0,"failure":"y[3] is nan"})" + "\n" + sample,
          start + gate + sample + "sample {\"error\":\"out of memory\"}\ncopy {\"error\":\"no\"}\n",
          "task {\"error\":\"no such norm\"}\n",
          start + "load {\"error\":\"no such file\"}\n" + gate + sample,
          "{\"protocol\":1}\n{}\n"};
}

}  // namespace normc::fuzz
