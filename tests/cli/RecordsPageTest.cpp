// The page of `normc records report`: what it says, and that it is one whole page that needs nothing else.
#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "tests/cli/Command.h"
#include "tools/normc/Page.h"
#include "tools/normc/RecordsPage.h"

namespace normc::cli {
namespace {

tune::Record record(const std::string& schedule, const std::string& stage, double ratio, int64_t number) {
  tune::Record r;
  r.task = {*parseProblemText("layer_norm:forward@f32[*x64]"), "hash", 1, 32, 64, 1, "warm"};
  r.device = {"cpu", "x86-64-v3", "A <fast> processor", {{"cores", 2}, {"last_cache", 32 << 20}}};
  r.toolchain = {{"normc", "0.1.0"}, {"llvm", "22"}};
  r.generator = "mlir", r.schedule = schedule, r.stage = stage, r.trials = 22;
  for (int i = 0; i < 5; ++i)
    r.samples.push_back(1e-6 * ratio * (1 + 0.001 * i)), r.reference.push_back(1e-6);
  r.session = "s", r.number = number, r.stamp = 1790000000000;
  return r;
}

tune::Database tuned() {
  tune::Record rejected = record("resident,rows=8", "screen", 1, 3);
  rejected.status = tune::Status::Wrong, rejected.reason = "y[3] is <nan> & not 1",
  rejected.samples = rejected.reference = {};
  tune::Record same = record("resident,rows=16", "screen", 1, 4);
  same.status = tune::Status::Duplicate, same.reason = "the same code as resident,rows=2",
  same.samples = same.reference = {};
  tune::Record choice = record("resident,rows=2", "race", 0.8, 7);
  choice.kind = tune::RecordKind::Choice,
  choice.conclusion = tune::Conclusion{tune::Verdict::Won, 0.8, 0.79, 0.81};
  std::string text;
  for (const tune::Record& each :
       {record("resident,rows=1", "screen", 1, 1), record("resident,rows=2", "screen", 0.8, 2), rejected,
        same, record("resident,rows=1", "race", 1, 5), record("resident,rows=2", "race", 0.8, 6), choice})
    text += tune::lineOf(each) + "\n";
  tune::Database database;
  database.add(text);
  return database;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Returns what is wrong with the nesting of the elements of a page; empty if it is right.
std::string flawOf(const std::string& page) {
  const std::set<std::string> single{"meta"};
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != page.npos; at = page.find('<', at + 1)) {
    const size_t end = page.find('>', at);
    if (end == page.npos) return "a tag has no end";
    const std::string tag = page.substr(at + 1, end - at - 1);
    if (tag.starts_with("!") || tag.ends_with("/")) continue;
    const bool closes = tag.starts_with("/");
    size_t length = closes ? 1 : 0;
    while (length < tag.size() && std::isalnum(static_cast<unsigned char>(tag[length]))) ++length;
    const std::string name = tag.substr(closes ? 1 : 0, length - (closes ? 1 : 0));
    if (name.empty()) return "a tag without a name: " + tag;
    if (single.contains(name)) continue;
    if (!closes) {
      open.push_back(name);
      continue;
    }
    if (open.empty() || open.back() != name) return name + " ends, but was not open";
    open.pop_back();
  }
  return open.empty() ? "" : open.back() + " has no end";
}

TEST(RecordsPage, ShowsTheCandidatesTheRaceTheChoiceAndTheMachine) {
  const std::string page = recordsPage(tuned());
  EXPECT_NE(page.find("layer_norm:forward@f32[*x64], 32 rows, 1 thread, warm"), page.npos) << page;
  EXPECT_NE(page.find("A &lt;fast&gt; processor, x86-64-v3, cores 2, last_cache 32"), page.npos);
  EXPECT_NE(page.find("measured on 2026-09-21"), page.npos);
  EXPECT_NE(page.find("llvm 22, normc 0.1.0"), page.npos);
  EXPECT_NE(
      page.find("Chosen: <code>mlir:resident,rows=2</code>, 1.25 times as fast as the default [1.23, 1.27]"),
      page.npos);
  EXPECT_EQ(count(page, "<svg "), 2u) << "candidates, and the race";
  EXPECT_EQ(count(page, "<circle "), 4u);
  EXPECT_EQ(count(page, "class=\"chosen\"><title>mlir:resident,rows=2: 0.802"), 2u);
  EXPECT_NE(page.find("2 candidates, the fastest first"), page.npos);
}

TEST(RecordsPage, SaysWhatWasRejectedAndWhy) {
  const std::string page = recordsPage(tuned());
  EXPECT_NE(page.find("<td>mlir:resident,rows=8</td><td>wrong</td><td>y[3] is &lt;nan&gt; &amp; not 1</td>"),
            page.npos)
      << page;
  EXPECT_NE(page.find("1 candidate had the code of another one"), page.npos);
  EXPECT_EQ(page.find("No candidate was rejected"), page.npos);
}

TEST(RecordsPage, IsOneWholePageThatNeedsNothingElse) {
  const std::string page = recordsPage(tuned());
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>\n"));
  EXPECT_EQ(flawOf(page), "");
  EXPECT_EQ(flawOf("<p><b></p></b>"), "p ends, but was not open");
  for (const char* part : {"<script", "http:", "https:", "src=", "href=", "url(", "@import"})
    EXPECT_EQ(page.find(part), page.npos) << part;
  EXPECT_NE(page.find("@media (prefers-color-scheme:dark)"), page.npos);
  EXPECT_EQ(recordsPage(tuned()), page);
  EXPECT_EQ(page.find("nan\""), page.npos) << "a place in a picture is a number";
}

TEST(RecordsPage, SaysWhereNothingIsDecided) {
  tune::Database database;
  database.add(tune::lineOf(record("resident,rows=1", "screen", 1, 1)) + "\n");
  const std::string page = recordsPage(database);
  EXPECT_NE(page.find("Nothing is decided."), page.npos);
  EXPECT_NE(page.find("No candidate was rejected."), page.npos);
  EXPECT_EQ(flawOf(page), "");
  EXPECT_EQ(recordsPage({}), "");
}

TEST(RecordsPage, TellsHowManyRowsWereScreened) {
  tune::Record fewer = record("resident,rows=1", "screen", 1, 1);
  fewer.screenedRows = 16;
  tune::Database database;
  database.add(tune::lineOf(fewer) + "\n");
  EXPECT_NE(recordsPage(database).find("They were screened with 16 rows."), std::string::npos);
}

TEST(RecordsPage, NormsOfOneNameHaveSectionsOfTheirOwn) {
  tune::Record one = record("resident,rows=1", "screen", 1, 1),
               other = record("resident,rows=1", "screen", 2, 2);
  one.task.norm = "a1b2c3d4e5f6", other.task.norm = "b1b2c3d4e5f6";
  tune::Database database;
  database.add(tune::lineOf(one) + "\n" + tune::lineOf(other) + "\n");
  const std::string page = recordsPage(database);
  EXPECT_EQ(count(page, "<h2>"), 2u) << page;
  EXPECT_EQ(count(page, "hash of the norm a1b2c3d4;"), 1u);
  EXPECT_EQ(count(page, "hash of the norm b1b2c3d4;"), 1u);
}

using ReportVerb = CommandTest;

TEST_F(ReportVerb, WritesThePageAndReplacesNoRecords) {
  write("db.jsonl", tuned().text());
  const Outcome made = normc({"records", "report", "db.jsonl", "-o", "report.html"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, "report.html\n");
  EXPECT_EQ(read("report.html"), recordsPage(tuned()));
  EXPECT_EQ(normc({"records", "report", "db.jsonl", "-o", "-"}).out, recordsPage(tuned()));
  EXPECT_EQ(normc({"records", "report", "db.jsonl", "-o", "db.jsonl"}).code, 2);
  EXPECT_EQ(read("db.jsonl"), tuned().text());
  const Outcome unnamed = normc({"records", "report", "db.jsonl"});
  EXPECT_EQ(unnamed.code, 2);
  EXPECT_TRUE(contains(unnamed.err, "normc records report needs the name of the page to write"));
}

}  // namespace
}  // namespace normc::cli
