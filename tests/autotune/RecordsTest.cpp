// Lines in, lines out: what is written is what is read, and what is not ours does no harm.
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "autotune/records/Database.h"
#include "autotune/records/Journal.h"

namespace normc::tune {
namespace {

Record sample(int64_t number = 0) {
  Record r;
  r.task = {
      *parseProblemText("layer_norm:forward@f32[*x1024]"), "0123456789abcdef", 1, 2048, 1024, 2, "warm"};
  r.device = {"cpu", "x86-64-v3", "a processor", {{"cores", 2}, {"last_cache", 33554432}}};
  r.toolchain = {{"normc", "0.1.0"}, {"llvm", "22.1.8"}};
  r.generator = "mlir";
  r.schedule = "resident,vector=8,rows=4";
  r.object = "ab";
  r.trials = 22;
  r.worst = 0.25;
  r.stage = "screen";
  r.samples = {1.5e-4, 0.1, 1.0 / 3};
  r.reference = {2e-4, 0.2, 2.0 / 3};
  r.session = "s";
  r.number = number;
  return r;
}

class Records : public testing::Test {
 protected:
  Records() {
    std::string form = (std::filesystem::temp_directory_path() / "normc-records-XXXXXX").string();
    folder_ = mkdtemp(form.data());
    path_ = folder_ + "/db.jsonl";
  }
  ~Records() override { std::filesystem::remove_all(folder_); }
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  std::string folder_, path_;
};

TEST_F(Records, AreReadAsTheyWereWritten) {
  Record choice = sample(7);
  choice.kind = RecordKind::Choice;
  choice.conclusion = Conclusion{Verdict::Won, 0.8, 0.75, 0.85};
  Record wrong = sample(8);
  wrong.status = Status::Wrong;
  wrong.reason = "y: \"nan\"\n\xff";
  Record fewer = sample(9);
  fewer.screenedRows = 512;
  for (const Record& record : {sample(), choice, fewer}) {
    const Line line = readLine(lineOf(record));
    ASSERT_TRUE(line.record);
    EXPECT_EQ(*line.record, record);
  }
  const Line line = readLine(lineOf(wrong));
  ASSERT_TRUE(line.record) << "bytes that are no UTF-8 are replaced, not written";
  EXPECT_EQ(line.record->status, Status::Wrong);
}

TEST_F(Records, ADuplicateIsOneOfANewerSchema) {
  Record same = sample();
  same.status = Status::Duplicate;
  same.reason = "the same code as resident,vector=8,rows=4";
  const std::string line = lineOf(same);
  EXPECT_NE(line.find("\"schema\":2,"), std::string::npos) << line;
  EXPECT_NE(line.find("\"status\":\"duplicate\""), std::string::npos) << line;
  ASSERT_TRUE(readLine(line).record);
  EXPECT_EQ(*readLine(line).record, same);
  EXPECT_NE(lineOf(sample()).find("\"schema\":1,"), std::string::npos)
      << "what schema 1 can say keeps its line";
}

TEST_F(Records, ADuplicateOfSchema1IsReadAsOne) {
  Record old = sample();
  old.status = Status::Refused;
  old.reason = "the same code as resident,vector=8,rows=4";
  const std::string line = lineOf(old);
  EXPECT_NE(line.find("\"status\":\"refused\""), std::string::npos) << line;
  ASSERT_TRUE(readLine(line).record);
  EXPECT_EQ(readLine(line).record->status, Status::Duplicate);
  EXPECT_EQ(readLine(line).record->reason, old.reason);
  old.reason = "rows is too large";
  EXPECT_EQ(readLine(lineOf(old)).record->status, Status::Refused);
  old.status = Status::Wrong;
  old.reason = "the same code as another";
  EXPECT_EQ(readLine(lineOf(old)).record->status, Status::Wrong);
  Database database;
  database.add(line + "\n");
  EXPECT_EQ(database.text(), line + "\n") << "a merge keeps the line and its id";
}

TEST_F(Records, ThatAnyVersionWroteAreRead) {  // a line is added to the file where a version adds a form
  const auto database = readDatabase(NORMC_OLD_RECORDS);
  ASSERT_TRUE(database);
  EXPECT_EQ(database->counts.text(), "8 records");
  std::vector<Record> records = database->records;
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.number < b.number; });
  std::vector<std::string> forms;
  for (const Record& r : records)
    forms.push_back(std::string(name(r.kind)) + " " + std::string(name(r.status)));
  EXPECT_EQ(forms, (std::vector<std::string>{"trial ok", "choice ok", "verify ok", "trial duplicate",
                                             "trial wrong", "trial duplicate", "trial crashed", "trial ok"}));
  EXPECT_EQ(records[0].task.text(), "layer_norm:forward@f32[*x64], 32 rows, 1 thread, warm");
  EXPECT_EQ(records[0].samples, (std::vector<double>{0.125, 0.25}));
  EXPECT_EQ(records[0].device.facts.at("l2"), 1048576);
  EXPECT_EQ(records[0].stamp, 0);
  EXPECT_EQ(records[1].conclusion->verdict, Verdict::Won);
  EXPECT_EQ(records[2].conclusion->high, 1.5);
  EXPECT_EQ(records[4].reason, "y: element 3 is 1, not 2");
  EXPECT_EQ(records[6].stamp, 7);
  EXPECT_EQ(records[7].task.problem.text(), "group_norm_segment:backward@bf16[*x*x64]{groups=8,mask}");
  EXPECT_EQ(records[7].device.arch, "sm_90");
}

TEST_F(Records, AReasonThatIsLongIsCut) {
  Record wrong = sample();
  wrong.status = Status::Wrong;
  for (const char* part : {"x", "\xff", "\u00e9", "\n"}) {
    wrong.reason = "y";
    while (wrong.reason.size() < 100000) wrong.reason += part;
    const Line line = readLine(lineOf(wrong));
    ASSERT_TRUE(line.record) << part;
    EXPECT_TRUE(line.record->reason.starts_with("y")) << part;
    EXPECT_TRUE(
        line.record->reason.ends_with(*part == '\xff' ? "\ufffd\u2026" : std::string(part) + "\u2026"))
        << part;
    EXPECT_GT(line.record->reason.size(), 4000u) << part;
  }
  wrong.reason = std::string(4096, 'x');
  EXPECT_EQ(readLine(lineOf(wrong)).record->reason, wrong.reason);
}

TEST_F(Records, ALineThatWasChangedIsDamaged) {
  const std::string good = lineOf(sample());
  int damaged = 0;
  for (size_t at = 0; at < good.size(); at += 7) {
    std::string bad = good;
    bad[at] = bad[at] == '1' ? '2' : '1';
    if (bad == good) continue;
    const Line line = readLine(bad);
    EXPECT_FALSE(line.record) << bad;
    damaged += line.flaw == Flaw::Damaged;
  }
  EXPECT_GT(damaged, 50);
}

TEST_F(Records, HostileLinesAreCountedAndPassedOver) {
  nlohmann::json newer = nlohmann::json::parse(lineOf(sample(1)));
  newer["schema"] = kSchema + 1;
  std::string text = lineOf(sample(2)) + "\n";
  text += newer.dump() + "\n";
  text += lineOf(sample(2)) + "\n";                         // again
  text += "\n   \n";                                        // nothing
  text += "null\n[1]\n{}\n\"a\"\nnot json\n";               // 5
  text += std::string(100000, '[') + "\n";                  // 6
  text += "{\"schema\": 1e300}\n{\"schema\": -1}\n";        // 8
  text += std::string(2 << 20, 'x') + "\n";                 // 9
  text += std::string("\0\xff\xfe\n", 4);                   // 10
  text += lineOf(sample(5)) + std::string("\0 more\n", 7);  // 11
  for (const char* key : {"task", "samples", "device"}) {   // 14: of a right hash, and wrong all the same
    nlohmann::json wrong = nlohmann::json::parse(lineOf(sample(3)));
    wrong.erase("id");
    wrong[key] = {{"rows", -5}};
    wrong["id"] = idOf(wrong);
    text += wrong.dump() + "\n";
  }
  text += lineOf(sample(4)).substr(0, 200);  // torn
  Database database;
  database.add(text);
  EXPECT_EQ(database.counts.records, 1);
  EXPECT_EQ(database.counts.newer, 1);
  EXPECT_EQ(database.counts.duplicates, 1);
  EXPECT_EQ(database.counts.damaged, 14);
  EXPECT_TRUE(database.counts.torn);
  EXPECT_EQ(database.counts.text(),
            "1 record, 1 duplicate, 14 damaged lines, 1 line of a newer normc, a torn last line");
}

TEST_F(Records, SamplesThatAreNoTimesAreDamage) {
  for (const double bad : {0.0, -1.0}) {
    Record record = sample();
    record.samples[1] = bad;
    EXPECT_FALSE(readLine(lineOf(record)).record) << bad;
  }
  Record record = sample();
  record.reference.pop_back();
  EXPECT_FALSE(readLine(lineOf(record)).record) << "each sample has its reference";
}

TEST_F(Records, AConclusionThatIsNoneIsDamage) {
  const auto isRead = [](const char* kind, const char* verdict, double ratio) {
    Record record = sample();
    record.conclusion = Conclusion{Verdict::Won, ratio, ratio, ratio};
    auto line = nlohmann::json::parse(lineOf(record));
    line.erase("id");
    line["kind"] = kind;
    line["conclusion"]["verdict"] = verdict;
    line["id"] = idOf(line);
    return readLine(line.dump()).record.has_value();
  };
  for (const double ratio : {-5.0, 0.0}) EXPECT_FALSE(isRead("choice", "won", ratio)) << ratio;
  for (const char* verdict : {"maybe", "", "slower", "wrong", "ok"})
    EXPECT_FALSE(isRead("choice", verdict, 0.5)) << verdict;
  for (const char* verdict : {"won", "tie"}) EXPECT_TRUE(isRead("choice", verdict, 0.5)) << verdict;
  for (const char* verdict : {"won", "tie", "slower", "wrong", "crashed", "hung", "refused"})
    EXPECT_TRUE(isRead("verify", verdict, 1.5)) << verdict;
  for (const char* verdict : {"maybe", "ok"}) EXPECT_FALSE(isRead("verify", verdict, 0.5)) << verdict;
  EXPECT_FALSE(isRead("other", "won", 0.5)) << "a kind that no version writes";
}

TEST_F(Records, SizesWhoseProductIsTooLargeAreDamage) {
  Record record = sample();
  record.task.segments = record.task.rows = int64_t(1) << 25;
  record.task.features = 1;
  EXPECT_TRUE(readLine(lineOf(record)).record);
  record.task.features = 2;
  EXPECT_FALSE(readLine(lineOf(record)).record) << "a reader multiplies them";
  record.task.segments = record.task.rows = record.task.features = kMostWhole;
  EXPECT_FALSE(readLine(lineOf(record)).record);
}

TEST_F(Records, AChoiceWithoutSamplesIsDamage) {
  Record choice = sample();
  choice.kind = RecordKind::Choice;
  choice.conclusion = Conclusion{Verdict::Won, 0.5, 0.4, 0.6};
  EXPECT_TRUE(readLine(lineOf(choice)).record);
  choice.samples.clear();
  choice.reference.clear();
  EXPECT_FALSE(readLine(lineOf(choice)).record) << "a reader takes their median";
  choice.kind = RecordKind::Verify;
  EXPECT_TRUE(readLine(lineOf(choice)).record) << "one that crashed has none";
}

TEST_F(Records, MergingDoesNotDependOnTheOrder) {
  std::vector<std::string> lines;
  for (int i = 0; i < 20; ++i) lines.push_back(lineOf(sample(i % 15)) + "\n");
  Database forth, back, twice;
  for (const std::string& line : lines) forth.add(line);
  std::reverse(lines.begin(), lines.end());
  for (const std::string& line : lines) back.add(line);
  EXPECT_EQ(forth.text(), back.text());
  EXPECT_EQ(forth.records.size(), 15u);
  EXPECT_EQ(forth.counts.duplicates, 5);
  twice.add(forth.text());
  twice.add(back.text());
  EXPECT_EQ(twice.text(), forth.text()) << "a set joined with itself";
}

TEST_F(Records, AProblemThatIsNotUnderstoodIsOfANewerNormc) {
  for (const char* problem :
       {"layer_norm:forward@f4[*x8]", "layer_norm:forward@f32[*x8]{layout=features_last}"}) {
    auto json = nlohmann::json::parse(lineOf(sample(1)));
    json.erase("id");
    json["task"]["problem"] = problem;
    json["id"] = idOf(json);
    const Line line = readLine(json.dump());
    EXPECT_FALSE(line.record) << problem;
    EXPECT_EQ(line.flaw, Flaw::NewerSchema) << problem;
  }
}

TEST_F(Records, LinesOfANewerNormcAreKept) {
  const std::string newer = "{\"schema\": 3, \"what\": \"else\"}";
  Database one, two;
  one.add(lineOf(sample(1)) + "\n" + newer + "\n");
  two.add(newer + "\n" + newer + "3\n" + lineOf(sample(2)));
  EXPECT_EQ(one.missing(two), std::vector<std::string>{lineOf(sample(2))});
  EXPECT_EQ(two.missing(one), std::vector<std::string>{lineOf(sample(1))});
  EXPECT_EQ(Database().missing(one), (std::vector<std::string>{lineOf(sample(1)), newer}));
  Database forth = one, back = two;
  forth.add(two);
  back.add(one);
  EXPECT_EQ(forth.text(), back.text());
  EXPECT_TRUE(forth.text().ends_with("\n" + newer + "\n"));
  EXPECT_EQ(forth.counts.text(), "2 records, 1 duplicate, 1 damaged line, 1 line of a newer normc");
}

TEST_F(Records, AFileThatIsReplacedIsAppendedToUnderItsPath) {
  Journal journal(path_);
  journal.append(sample(1));
  std::filesystem::rename(path_, folder_ + "/old.jsonl");
  journal.append(sample(2));
  std::ofstream(folder_ + "/new.jsonl") << content();
  std::filesystem::rename(folder_ + "/new.jsonl", path_);
  journal.append(sample(3));
  journal.sync();
  EXPECT_EQ(readDatabase(path_)->counts.records, 2) << "of the second and the third file";
  EXPECT_EQ(readDatabase(folder_ + "/old.jsonl")->counts.records, 1);
}

TEST_F(Records, NoLineIsLostWhileAFileIsReadAndReplaced) {
  constexpr int kLines = 300;
  Journal{path_}.sync();  // a file that is not there cannot be held
  const pid_t child = fork();
  if (child == 0) {
    Journal journal(path_);
    for (int i = 0; i < kLines; ++i) journal.append(sample(i));
    _exit(0);
  }
  for (int status = 0; waitpid(child, &status, WNOHANG) == 0;) {
    usleep(2000);  // locks are not fair
    const Hold hold(path_);
    const auto database = readDatabase(path_);
    if (!database) continue;  // not yet begun
    std::ofstream(folder_ + "/new.jsonl") << database->text();
    std::filesystem::rename(folder_ + "/new.jsonl", path_);
  }
  EXPECT_EQ(readDatabase(path_)->counts.records, kLines);
}

TEST_F(Records, AreAppendedToTheirPathWhereverTheProcessGoes) {
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  Journal journal("db.jsonl");
  std::filesystem::current_path(here);
  journal.append(sample(1));
  EXPECT_EQ(readDatabase(path_)->counts.records, 1);
  EXPECT_EQ(journal.path(), "db.jsonl");
}

TEST_F(Records, AFileIsNeverAStandardStream) {
  const pid_t child = fork();
  if (child == 0) {
    close(0);
    close(1);
    close(2);
    Journal journal(path_);
    for (int stream = 0; stream < 3; ++stream)
      if (::write(stream, "progress", 8) >= 0) _exit(1);
    journal.append(sample(1));
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(content(), lineOf(sample(1)) + "\n");
}

TEST_F(Records, AppendingAfterATornLineLosesOnlyThatLine) {
  write(lineOf(sample(1)) + "\n" + lineOf(sample(2)).substr(0, 100));
  Journal(path_).append(sample(3));
  const auto database = readDatabase(path_);
  ASSERT_TRUE(database);
  EXPECT_EQ(database->counts.records, 2);
  EXPECT_EQ(database->counts.damaged, 1);
  EXPECT_FALSE(database->counts.torn);
}

TEST_F(Records, AFileCutAnywhereLosesTheLineThatWasCut) {
  std::string text;
  std::vector<size_t> ends;
  for (int i = 0; i < 5; ++i) {
    text += lineOf(sample(i)) + "\n";
    ends.push_back(text.size());
  }
  for (size_t cut = 0; cut <= text.size(); cut += 37) {
    Database database;
    database.add(std::string_view(text).substr(0, cut));
    // The end of a line is not needed to read it.
    EXPECT_EQ(database.counts.records,
              std::count_if(ends.begin(), ends.end(), [&](size_t end) { return end <= cut + 1; }))
        << cut;
  }
}

TEST_F(Records, ProcessesMayShareAFile) {
  constexpr int kWriters = 32, kLines = 20;
  std::vector<pid_t> children;
  for (int w = 0; w < kWriters; ++w) {
    children.push_back(fork());
    if (children.back() > 0) continue;
    Journal journal(path_);
    for (int i = 0; i < kLines; ++i) journal.append(sample(w * kLines + i));
    _exit(0);
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  const auto database = readDatabase(path_);
  ASSERT_TRUE(database);
  EXPECT_EQ(database->counts.records, kWriters * kLines);
  EXPECT_EQ(database->counts.damaged, 0);
}

TEST_F(Records, WhatAppendReturnedFromSurvivesKill9) {
  int pipes[2];
  int64_t total = 0;
  ASSERT_EQ(pipe(pipes), 0);
  for (int round = 0; round < 5; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      Journal journal(path_);
      for (int64_t i = 0;; ++i) {
        journal.append(sample(round * 1000000 + i));
        if (::write(pipes[1], "c", 1) != 1) _exit(1);
      }
    }
    int committed = 0;
    char byte;
    while (committed < 7 * (round + 1) && read(pipes[0], &byte, 1) == 1) ++committed;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    int waiting = 0;  // output from before the stop counts too
    ioctl(pipes[0], FIONREAD, &waiting);
    for (int i = 0; i < waiting; ++i) committed += read(pipes[0], &byte, 1) == 1;
    total += committed;
    const auto database = readDatabase(path_);
    ASSERT_TRUE(database);
    EXPECT_GE(database->counts.records, total);
    EXPECT_LE(database->counts.records, total + round + 1) << "one of each killed writer may be there unsaid";
  }
  close(pipes[0]);
  close(pipes[1]);
}

TEST_F(Records, AFileThatCannotBeWrittenIsSaid) {
  try {
    Journal("/nowhere/at/all.jsonl");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cannot write /nowhere/at/all.jsonl: No such file or directory");
  }
  const auto none = readDatabase(folder_);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.errors()[0].message, "cannot read " + folder_ + ": Is a directory");
}

TEST_F(Records, AFirstLineThatWasTornIsOneAndALineOfSomethingElseIsNot) {
  Record choice = sample();
  choice.kind = RecordKind::Choice;
  choice.conclusion = Conclusion{Verdict::Won, 0.8, 0.75, 0.85};
  for (const std::string& line : {lineOf(sample()), lineOf(choice)})
    for (const size_t end : {size_t(1), size_t(12), line.size() / 2}) {
      const auto database = databaseOf(line.substr(0, end), "db");
      ASSERT_TRUE(database) << line.substr(0, end);
      EXPECT_TRUE(database->counts.torn);
    }
  for (const char* text : {"a shopping list", "{\"name\": 1}", "3", "\xef\xbb\xbf{"}) {
    const auto database = databaseOf(text, "db");
    ASSERT_FALSE(database) << text;
    EXPECT_EQ(database.errors()[0].message, "db holds no records: 1 line, none of them a measurement");
  }
  EXPECT_TRUE(databaseOf("", "db")) << "a file that begins";
}

TEST_F(Records, ADeviceIsNeitherReadNorWritten) {
  const auto zero = readDatabase("/dev/zero");
  ASSERT_FALSE(zero);
  EXPECT_EQ(zero.errors()[0].message, "cannot read /dev/zero: it is not a regular file");
  try {
    Journal("/dev/full");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cannot write /dev/full: it is not a regular file");
  }
}

TEST_F(Records, APipeIsReadToItsEnd) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << lineOf(sample(0)) << "\n"; });
  const auto database = readDatabase(pipe);
  writer.join();
  ASSERT_TRUE(database);
  EXPECT_EQ(database->counts.records, 1);
}

TEST_F(Records, AFullDiskIsSaidAndKeepsWhatIsThere) {
  const pid_t child = fork();
  if (child == 0) {  // a limit on the size of files simulates a full disk
    signal(SIGXFSZ, SIG_IGN);
    const std::string one = lineOf(sample(0)) + "\n";
    const rlimit limit{rlim_t(one.size() * 5 / 2), rlim_t(one.size() * 5 / 2)};
    setrlimit(RLIMIT_FSIZE, &limit);
    Journal journal(path_);
    try {
      for (int i = 0; i < 5; ++i) journal.append(sample(i));
    } catch (const std::runtime_error& error) {
      _exit(std::string(error.what()).starts_with("cannot write all of a record to " + path_ + ": ") ? 3 : 4);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(readDatabase(path_)->counts.records, 2);
}

TEST_F(Records, DevicesThatDifferInAnythingHaveAnotherId) {
  const Device one = sample().device;
  Device other = one;
  EXPECT_EQ(one.id().size(), 16u);
  EXPECT_EQ(one.id(), other.id());
  other.facts["cores"] = 4;
  EXPECT_NE(one.id(), other.id());
}

}  // namespace
}  // namespace normc::tune
