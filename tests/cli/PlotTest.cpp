// The scripts of `normc records plot`: which points and lines the pictures have.
#include <gtest/gtest.h>

#include "autotune/records/Record.h"
#include "tools/normc/Plot.h"

namespace normc::cli {
namespace {

tune::Record trial(const std::string& schedule, tune::Samples samples, tune::Samples reference) {
  tune::Record r;
  r.task = {*parseProblemText("layer_norm:forward@f32[*x64]"), "a1b2c3d4e5f6", 1, 32, 64, 1, "warm"};
  r.device = {"cpu", "x86-64-v3", "a processor", {}};
  r.toolchain = {{"normc", "0.1.0"}};
  r.generator = "mlir", r.schedule = schedule, r.stage = "screen";
  r.samples = std::move(samples), r.reference = std::move(reference), r.session = "s";
  return r;
}

/// A choice that takes half of the default's time, 1 second.
tune::Record choice(const std::string& problem, int64_t rows, int64_t features, int64_t threads = 1) {
  tune::Record r = trial("resident,rows=1", {0.5}, {1});
  r.kind = tune::RecordKind::Choice, r.stage = "race";
  r.task.problem = *parseProblemText(problem);
  r.task.rows = rows, r.task.features = features, r.task.threads = threads;
  r.conclusion = tune::Conclusion{tune::Verdict::Won, 0.5, 0.5, 0.5};
  return r;
}

std::string scriptOf(std::vector<tune::Record> records, const std::string& picture) {
  tune::Database database;
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].number = int64_t(i), records[i].stamp = 1 + int64_t(i);
    database.add(tune::lineOf(records[i]) + "\n");
  }
  return plotScript(database, picture);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Plot, ACandidateIsOnePointOfItsTask) {
  const std::string script =
      scriptOf({trial("rows=1", {1, 1}, {1, 1}), trial("rows=2", {1, 9}, {2, 2}),
                trial("rows=2", {1, 8, 2}, {2, 1, 4}), trial("rows=2", {3}, {6})},  // drift meets both
               "landscape");
  EXPECT_NE(script.find("$task0 << EOD\n1 0.500000\n2 1.000000\nEOD\n"), script.npos) << script;
  EXPECT_EQ(count(script, "<< EOD"), 1u);
}

TEST(Plot, TasksOfOtherNormsDevicesAndToolchainsHaveOtherLandscapes) {
  tune::Record norm = trial("rows=1", {1}, {1}), device = norm, tools = norm;
  norm.task.norm = "another", device.device.name = "another", tools.toolchain["normc"] = "0.2.0";
  const std::string script = scriptOf({trial("rows=1", {1}, {1}), norm, device, tools}, "landscape");
  EXPECT_EQ(count(script, "<< EOD\n1 1.000000\nEOD\n"), 4u) << script;
  EXPECT_NE(script.find("32 rows, 1 thread, warm, norm a1b2c3d4, device "), script.npos) << script;
  EXPECT_NE(script.find("normc 0.2.0"), script.npos) << script;
}

TEST(Plot, EachOptionOfACallHasItsLineOverFeatures) {
  const std::string plain = "layer_norm:forward@f32[*x64]";
  tune::Record norm = choice(plain, 32, 64), device = norm;
  norm.task.norm = "another", device.device.name = "another";
  const std::string script =
      scriptOf({choice(plain, 32, 64), choice("layer_norm:forward@f32[*x128]", 32, 128), norm, device,
                choice(plain, 32, 64, 2), choice("layer_norm:forward@f32[*x64]{mask}", 32, 64)},
               "features");
  EXPECT_EQ(count(script, "<< EOD"), 5u) << script;
  EXPECT_NE(script.find("layer_norm:forward@f32[*x*], 2 threads, warm, norm a1b2c3d4, device "), script.npos)
      << script;
  EXPECT_NE(script.find("layer_norm:forward@f32[*x*]{mask}, 1 thread, "), script.npos) << script;
  EXPECT_NE(script.find(", 32 rows, tuned\""), script.npos) << script;
}

TEST(Plot, OfSeveralToolchainsTheNewestChoiceIsDrawn) {
  tune::Record newer = choice("layer_norm:forward@f32[*x64]", 32, 64);
  newer.toolchain["normc"] = "0.2.0", newer.samples = {0.25};
  const std::string script = scriptOf({choice("layer_norm:forward@f32[*x64]", 32, 64), newer}, "features");
  EXPECT_EQ(count(script, "\n64.000000 "), 1u) << script;
}

TEST(Plot, ShapesOfAsManyBytesAreBothDrawn) {
  const std::string script = scriptOf(
      {choice("layer_norm:forward@f32[*x64]", 32, 64), choice("layer_norm:forward@f32[*x32]", 64, 32)},
      "roofline");
  EXPECT_EQ(count(script, "<< EOD"), 1u) << script;
  EXPECT_EQ(count(script, "\n8192.000000 "), 2u) << script;
}

}  // namespace
}  // namespace normc::cli
