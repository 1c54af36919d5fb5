#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tools/normc/TuneReport.h"

namespace normc::cli {
namespace {

/// A task whose default stayed, as the report sees it.
Tuned tied(bool patient) {
  Tuned tuned{.landscape = tune::Landscape({{"mlir", "streamed", 1, {0}}}, 0),
              .defaultSamples = {1e-5, 1e-5}};
  tuned.task.problem = *parseProblemText("layer_norm:forward@f32[*x768]");
  tuned.outcome.decision.tie = true;
  tuned.disturbed = 7, tuned.patient = patient;
  return tuned;
}

std::string reported(bool patient, bool json) {
  std::ostringstream results, talk;
  Output out(results, talk);
  out.json = json;
  report({tied(patient), tied(true)}, true, "", out);
  return results.str();
}

TEST(TuneReport, SaysWhenSamplesWereTakenOnASharedCore) {
  const char* const line =
      "samples of 1 problem were taken while others computed on the core too: a longer --budget waits "
      "longer\n";
  EXPECT_NE(reported(false, false).find(line), std::string::npos);
  EXPECT_EQ(reported(true, false).find("others computed"), std::string::npos);
}

TEST(TuneReport, ComparesEachNamedScheduleWithTheDefault) {
  Tuned tuned = tied(true);
  tuned.landscape = tune::Landscape({{"mlir", "streamed", 1, {0}}, {"mlir", "resident", 1, {1}}}, 0);
  tuned.outcome.racers = {{0, {1e-5, 1e-5}}, {1, {2e-5, 2e-5}}};
  const auto text = [&](bool named) {
    tuned.named = named;
    std::ostringstream results, talk;
    Output out(results, talk);
    report({tuned}, true, "", out);
    return results.str();
  };
  EXPECT_NE(text(true).find("resident: 2.00 [2.00, 2.00] of the default's time, 2 rounds\n"),
            std::string::npos)
      << text(true);
  EXPECT_EQ(text(false).find("of the default's time"), std::string::npos);
}

TEST(TuneReport, ANamedScheduleWithTheCodeOfAnotherSaysOfWhich) {
  Tuned tuned = tied(true);
  tuned.landscape = tune::Landscape({{"mlir", "streamed", 1, {0}}, {"mlir", "resident", 1, {1}}}, 0);
  tuned.outcome.racers = {{0, {1e-5, 1e-5}}};
  tuned.outcome.screened = {
      {.point = 1, .status = tune::Status::Duplicate, .reason = "the same code as streamed"}};
  tuned.named = true;
  std::ostringstream results, json, talk;
  Output out(results, talk);
  report({tuned}, true, "", out);
  EXPECT_NE(results.str().find("layer_norm:forward@f32[*x768], resident: the same code as streamed\n"),
            std::string::npos)
      << results.str();
  Output program(json, talk);
  program.json = true;
  report({tuned}, true, "", program);
  const Json task = Json::parse(json.str()).at("tasks").at(0);
  EXPECT_EQ(task.at("duplicates").at(0).at("schedule"), "resident");
  EXPECT_EQ(task.at("duplicates").at(0).at("reason"), "the same code as streamed");
}

TEST(TuneReport, WhatALaterTaskFailedOfIsInTheDocument) {
  const auto text = [](bool json) {
    std::ostringstream results, talk;
    Output out(results, talk);
    out.json = json;
    report({tied(true)}, true, "", out, {}, {{.message = "the device is gone"}});
    return results.str();
  };
  const Json json = Json::parse(text(true));
  EXPECT_EQ(json.at("tasks").size(), 1u);
  EXPECT_EQ(json.at("complete"), false);
  EXPECT_EQ(json.at("errors").at(0).at("message"), "the device is gone");
  EXPECT_EQ(text(false).find("interrupted"), std::string::npos) << "the error is said apart";
}

TEST(TuneReport, WhatWasInterruptedIsNoDecision) {
  const auto text = [](bool complete) {
    Tuned tuned = tied(true);
    tuned.outcome.complete = tuned.outcome.decided = complete, tuned.outcome.decision.tie = false;
    std::ostringstream results, talk;
    Output out(results, talk);
    report({tuned}, complete, "", out);
    return results.str();
  };
  EXPECT_NE(text(true).find("1 faster than the default, 0 as it was\n"), std::string::npos) << text(true);
  EXPECT_NE(text(true).find("streamed"), std::string::npos);
  EXPECT_NE(text(false).find("0 faster than the default, 0 as it was, 1 not decided; interrupted"),
            std::string::npos)
      << text(false);
  EXPECT_NE(text(false).find("not decided"), std::string::npos);
  EXPECT_EQ(text(false).find("streamed"), std::string::npos) << "no schedule is chosen";
}

TEST(TuneReport, ABudgetThatEndedBeforeARaceIsNoDecision) {
  Tuned tuned = tied(true);
  tuned.outcome.decided = false;
  std::ostringstream results, talk;
  Output out(results, talk);
  report({tuned}, true, "", out);
  EXPECT_NE(results.str().find("not decided"), std::string::npos) << results.str();
  EXPECT_NE(results.str().find("0 faster than the default, 0 as it was, 1 not decided\n"), std::string::npos);
}

TEST(TuneReport, NamesTheProblemsThatWereNotBegun) {
  tune::Task task;
  task.problem = *parseProblemText("layer_norm:forward@f32[*x768]"), task.rows = 8, task.policy = "warm";
  const auto text = [&](bool json) {
    std::ostringstream results, talk;
    Output out(results, talk);
    out.json = json;
    report({tied(true)}, true, "", out, {task});
    return results.str();
  };
  EXPECT_NE(text(false).find("not tuned, since --total leaves less than a quarter of --budget:\n  "
                             "layer_norm:forward@f32[*x768], 8 rows, 1 thread, "
                             "warm\n"),
            std::string::npos)
      << text(false);
  const Json json = Json::parse(text(true));
  EXPECT_EQ(json["undone"], Json::array({"layer_norm:forward@f32[*x768], 8 rows, 1 thread, warm"}));
  EXPECT_EQ(json["complete"], false);
}

TEST(TuneReport, SaysHowToReproduceWhatWasRejected) {
  Tuned tuned = tied(true);
  tuned.task.problem = *parseProblemText("mine:forward@f32[*x*x768]"), tuned.task.segments = 8,
  tuned.task.rows = 4, tuned.task.policy = "cold";
  tuned.norms = "'my norm.norm' ",
  tuned.place = " --target 'sm_90' --device 'cuda:1' --cuda-library './libcuda.so'";
  tuned.outcome.screened = {{.point = 0, .status = tune::Status::Wrong, .reason = "y[0] is wrong"}};
  std::ostringstream results, talk;
  Output out(results, talk);
  report({tuned}, true, "", out);
  EXPECT_NE(results.str().find("\n  reproduce: normc tune 'my norm.norm' 'mine:forward@f32[*x*x768]' "
                               "--segments 8 --rows 4 --policy cold "
                               "--threads 1 --target 'sm_90' --device 'cuda:1' --cuda-library './libcuda.so' "
                               "--schedule 'streamed'\n"),
            std::string::npos)
      << results.str();
}

TEST(TuneReport, ADuplicateIsNoRejection) {
  Tuned tuned = tied(true);
  tuned.outcome.screened = {
      {.point = 0, .status = tune::Status::Duplicate, .reason = "the same code as resident"},
      {.point = 0, .status = tune::Status::Refused, .reason = "the same code as what was refused"}};
  std::ostringstream results, json, talk;
  Output out(results, talk);
  report({tuned}, true, "", out);
  EXPECT_EQ(results.str().find("duplicate"), std::string::npos) << results.str();
  EXPECT_NE(results.str().find("streamed: refused\n  the same code as what was refused\n"), std::string::npos)
      << results.str();
  Output program(json, talk);
  program.json = true;
  report({tuned}, true, "", program);
  const Json task = Json::parse(json.str()).at("tasks").at(0);
  EXPECT_EQ(task.at("candidates").at("same_code"), 1);
  EXPECT_EQ(task.at("candidates").at("refused"), 1);
  EXPECT_EQ(task.at("rejected").size(), 1u);
}

TEST(TuneReport, AnInterruptIsNoFaultOfTheDefault) {
  Tuned tuned = tied(true);
  tuned.outcome.failure = "it was interrupted in the first rounds of its race",
  tuned.outcome.interrupted = true;
  std::ostringstream results, talk;
  Output out(results, talk);
  report({tuned}, false, "", out);
  EXPECT_NE(results.str().find(": not tuned: it was interrupted in the first rounds of its race\n"),
            std::string::npos)
      << results.str();
  EXPECT_NE(results.str().find(": 0 faster than the default, 0 as it was, 1 not measured; interrupted"),
            std::string::npos)
      << results.str();
}

TEST(TuneReport, JsonCountsDisturbedSamples) {
  const Json task = Json::parse(reported(false, true)).at("tasks").at(0);
  EXPECT_EQ(task.at("disturbed"), 7);
  EXPECT_EQ(task.at("patient"), false);
}

TEST(TuneReport, SaysWhatAProgramSaidThatCannotBeStarted) {
  const auto shown = [](const std::string& reason) {
    Tuned tuned = tied(true);
    tuned.outcome.screened = {{.point = 0, .status = tune::Status::Refused, .reason = reason}};
    std::ostringstream results, talk;
    Output out(results, talk);
    report({tuned}, true, "", out);
    return results.str();
  };
  EXPECT_NE(shown("'gen' cannot be started; it said:\nlibHalide.so: no such file\nmore\n")
                .find("\n  'gen' cannot be started; it said: libHalide.so: no such file\n  reproduce:"),
            std::string::npos);
  EXPECT_NE(shown("it crashed\nmore").find("\n  it crashed\n  reproduce:"), std::string::npos);
  EXPECT_NE(shown("it said:").find("\n  it said:\n  reproduce:"), std::string::npos);
}

}  // namespace
}  // namespace normc::cli
