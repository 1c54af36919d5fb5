// Each system call about a file fails in turn: a command that ends well has the same bits, one that does not
// says which file and why, and what it would have written is as it was.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "autotune/records/Database.h"
#include "autotune/tune/ThisDevice.h"
#include "dsl/Library.h"
#include "llvm/Config/llvm-config.h"
#include "runtime/normc.h"
#include "tests/cli/Faults.h"

namespace normc::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProblem = "layer_norm:infer@f32[*x64]";
/// Legal on every processor, and not a default of any.
constexpr const char* kSchedule = "resident,vector=4,rows=2,unroll=2,tile=4,grain=8,stream=0";

/// A line of records that chooses the schedule: a command that loses it compiles something else.
std::string choiceOf(int64_t rows) {
  tune::Record r;
  r.kind = tune::RecordKind::Choice;
  r.task = {*parseProblemText(kProblem), (*findNorm("layer_norm"))->structuralHash(), 1, rows, 64, 1, "warm"};
  r.device = tune::thisProcessor(normc_cpu_isa());
  r.toolchain = {{"normc", normc_version()}, {"llvm", LLVM_VERSION_STRING}};
  r.generator = "mlir", r.schedule = kSchedule;
  r.stage = "race", r.trials = 22, r.samples = {1e-6}, r.reference = {2e-6}, r.session = "s";
  r.conclusion = tune::Conclusion{tune::Verdict::Won, 0.5, 0.49, 0.51};
  return lineOf(r) + "\n";
}

/// A command, and the file that it makes or adds to.
struct Job {
  const char* name;
  std::vector<std::string> command;
};

const Job kCompile{"compile",
                   {"compile", "in.norm", kProblem, "--records", "a.jsonl", "--threads", "1", "-o", "out"}};
const Job kMerge{"merge", {"records", "merge", "a.jsonl", "b.jsonl", "-o", "out"}};
const Job kImport{"import", {"tune", "import", "a.jsonl", "--records", "out"}};
const Job kTune{"tune",
                {"tune", kProblem, "--rows", "32", "--budget", "100ms", "--threads", "1", "--schedule",
                 kSchedule, "--records", "out"}};

struct Case {
  const Job* job;
  Fault fault;   ///< of call 0: each in turn
  int step = 1;  ///< calls 1, 1 + step, ...
};

std::string nameOf(const Case& each) {
  const int error = std::atoi(each.fault.what.c_str());
  const std::string worker = each.fault.program == "normc" ? "" : "worker_";
  return std::string(each.job->name) + "_" + worker + each.fault.kind + "_" +
         (error ? strerrorname_np(error) : each.fault.what);
}

void PrintTo(const Case& each, std::ostream* out) { *out << nameOf(each); }

class Faults : public FaultyTest, public testing::WithParamInterface<Case> {
 protected:
  Faults() {
    write("in.norm", "norm mine from rms_norm {\n  epsilon 1e-5\n}\n");
    write("a.jsonl", choiceOf(16));
    write("b.jsonl", choiceOf(32));
  }
  /// Runs the command with the fault in a call. True if there is such a call.
  bool runWith(int call) {
    Fault fault = GetParam().fault;
    fault.call = call;
    outcome_ = normcWith(fault, GetParam().job->command);
    return !met().empty();
  }
  std::string trace(int call) const {
    return "call " + std::to_string(call) + (met().empty() ? "" : ": " + met()[0]);
  }
  /// The failed command said why in a sentence. A tuning says it in its report if its default is not
  /// measured.
  void expectReason() const {
    const bool reported = outcome_.code == 1;
    const std::string& said = reported ? outcome_.out : outcome_.err;
    EXPECT_TRUE(reported ? GetParam().job->command[0] == "tune" : outcome_.code == 3) << outcome_.code;
    EXPECT_TRUE(contains(said, reported ? "the default could not be measured: " : "normc: error: "));
    EXPECT_TRUE(contains(said, std::strerror(std::atoi(GetParam().fault.what.c_str()))));
    EXPECT_FALSE(outcome_.err.find("did not expect") != std::string::npos) << outcome_.err;
  }

  Outcome outcome_;
};

/// Commands that make a file from files.
class FaultOf : public Faults {
 protected:
  /// The bytes of the output of a command without fault.
  std::string wanted() {
    static std::map<const Job*, std::string> made;
    std::string& bytes = made[GetParam().job];
    if (!bytes.empty()) return bytes;
    const Outcome o = normc(GetParam().job->command);
    EXPECT_EQ(o.code, 0) << o.err;
    bytes = read("out"), fs::remove(folder_ + "/out");
    return bytes;
  }
};

TEST_P(FaultOf, ACallIsSaidAndChangesNothing) {
  const std::string want = wanted();
  const std::vector<std::string> before = files();
  int calls = 0;
  for (int call = 1;; call += GetParam().step) {
    const bool replaces = call / GetParam().step % 2 == 0;  // an output that is there, and none
    if (replaces) write("out", "what was there");
    if (!runWith(call)) break;
    SCOPED_TRACE(trace(call));
    ++calls;
    if (outcome_.code == 0) {
      EXPECT_TRUE(read("out") == want);
    } else {
      expectReason();
      EXPECT_EQ(exists("out"), replaces);
      EXPECT_EQ(read("out"), replaces ? "what was there" : "");
    }
    fs::remove(folder_ + "/out");
    EXPECT_EQ(files(), before);
    EXPECT_TRUE(leftBehind().empty());
  }
  EXPECT_EQ(outcome_.code, 0) << outcome_.err;
  EXPECT_TRUE(read("out") == want);
  EXPECT_GE(calls, 1) << "there is such a call";
  RecordProperty("faults", calls);
}

/// Commands that add to records.
using FaultOfRecords = Faults;

TEST_P(FaultOfRecords, ACallLosesTheMeasurementAtHandAtMost) {
  const std::string old = choiceOf(64);
  write("out", old);
  const std::vector<std::string> before = files();
  int calls = 0;
  for (int call = 1;; call += GetParam().step) {
    write("out", old);
    if (!runWith(call)) break;
    SCOPED_TRACE(trace(call));
    ++calls;
    if (outcome_.code != 0) expectReason();
    EXPECT_TRUE(read("out").starts_with(old));
    const auto database = tune::readDatabase(folder_ + "/out");
    ASSERT_TRUE(database);
    EXPECT_EQ(database->counts.damaged, 0);
    for (const tune::Record& record : database->records)
      EXPECT_EQ(record.status, tune::Status::Ok) << "it is no candidate's fault: " << record.reason;
    EXPECT_EQ(files(), before);
    EXPECT_TRUE(leftBehind().empty());
  }
  EXPECT_EQ(outcome_.code, 0) << outcome_.err;
  EXPECT_GE(calls, 1) << "there is such a call";
  RecordProperty("faults", calls);
}

std::vector<Case> makers(int step) {
  std::vector<Case> list;
  const auto add = [&](const Job& job, const char* kind, int error) {
    list.push_back({&job, {kind, 0, std::to_string(error)}, step});
  };
  for (const Job* job : {&kCompile, &kMerge}) {
    add(*job, "open", EMFILE);
    for (const int error : {EIO, EINTR}) add(*job, "read", error);
    for (const int error : {ENOSPC, EINTR}) add(*job, "write", error);
    for (const int error : {EIO, EINTR}) add(*job, "fsync", error);
    for (const char* kind : {"close", "link"}) add(*job, kind, EIO);
    add(*job, "rename", EXDEV);
  }
  return list;
}

std::vector<Case> adders(int step) {
  std::vector<Case> list;
  const auto add = [&](const Job& job, const char* kind, int error, const char* program = "normc") {
    list.push_back({&job, {kind, 0, std::to_string(error), program}, step});
  };
  for (const Job* job : {&kImport, &kTune}) {
    add(*job, "open", EMFILE);
    for (const int error : {EIO, EINTR}) add(*job, "read", error);
    for (const int error : {ENOSPC, EINTR}) add(*job, "write", error);
    add(*job, "fsync", EIO);
  }
  add(kTune, "start", EAGAIN);
  add(kTune, "open", EMFILE, "normc-worker");
  for (const int error : {EIO, EINTR}) add(kTune, "read", error, "normc-worker");
  add(kTune, "write", ENOSPC, "normc-worker");
  add(kTune, "mmap", ENOMEM, "normc-worker"), list.back().step *= 10;
  return list;
}

constexpr auto kName = [](const auto& info) { return nameOf(info.param); };

class ShortTransfers : public FaultOf {};

TEST_P(ShortTransfers, HaveTheSameBits) {
  const std::string want = wanted();
  EXPECT_EQ(normcWith(GetParam().fault, GetParam().job->command).code, 0);
  EXPECT_FALSE(met().empty());
  EXPECT_TRUE(read("out") == want);
}

INSTANTIATE_TEST_SUITE_P(All, ShortTransfers,
                         testing::Values(Case{&kCompile, {"read", 0, "short"}},
                                         Case{&kCompile, {"write", 0, "short"}},
                                         Case{&kMerge, {"read", 0, "short"}},
                                         Case{&kMerge, {"write", 0, "short"}}),
                         kName);
INSTANTIATE_TEST_SUITE_P(Some, FaultOf, testing::ValuesIn(makers(5)), kName);
INSTANTIATE_TEST_SUITE_P(RestOfAll, FaultOf, testing::ValuesIn(makers(1)), kName);
INSTANTIATE_TEST_SUITE_P(Some, FaultOfRecords, testing::ValuesIn(adders(40)), kName);
INSTANTIATE_TEST_SUITE_P(RestOfAll, FaultOfRecords, testing::ValuesIn(adders(1)), kName);

}  // namespace
}  // namespace normc::cli
