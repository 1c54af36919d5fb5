// The tuner's C API from outside: the library as a host links it, on bundles of kernels made by hand.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "autotune/tuner/normc_tuner.h"
#include "runtime/normc.hpp"
#include "tests/autotune/Wild.h"

extern "C" int normc_tuner_test_from_c(void);

namespace normc::tune::test {
namespace {

constexpr const char* kProblem = "layer_norm:forward@f32[*x24]";

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos ? testing::AssertionSuccess()
                                      : testing::AssertionFailure() << text << " has no " << part;
}

class Tuner : public WildTest {
 protected:
  Tuner() {
    request_.struct_size = sizeof request_;
    result_.struct_size = sizeof result_;
    options_.struct_size = sizeof options_;
    request_.problem = kProblem;
    request_.rows = kRows;
    request_.threads = 1;
    request_.budget_seconds = 3;
    options_.worker = NORMC_WORKER;
  }
  ~Tuner() override { normc_tuner_destroy(tuner_); }

  normc_status open() { return normc_tuner_open(folder_.c_str(), &options_, &tuner_); }
  normc_status run() { return normc_tuner_run(tuner_, &request_, &result_); }
  static std::string error() { return normc_tuner_last_error(); }
  std::vector<Record> records() const { return readDatabase(folder_ + "/results.jsonl")->records; }

  normc_tuner_options options_{};
  normc_tuner_request request_{};
  normc_tuner_result result_{};
  normc_tuner* tuner_ = nullptr;
};

TEST_F(Tuner, IsCAndExportsNothingButItsOwnNames) {
  EXPECT_EQ(normc_tuner_test_from_c(), 1);
  std::istringstream lines(outputOf("nm -D --defined-only " NORMC_TUNER_LIBRARY));
  int names = 0;
  for (std::string line; std::getline(lines, line); ++names)
    EXPECT_TRUE(std::regex_search(line, std::regex(" T normc_tuner_[a-z_]+$"))) << line;
  EXPECT_EQ(names, 5);
  const std::string needed = outputOf("readelf -d " NORMC_TUNER_LIBRARY);
  EXPECT_TRUE(contains(needed, "libnormc_tuner.so.0"));
  EXPECT_TRUE(contains(needed, "libnormc_runtime.so.0"));
  for (const char* library : {"LLVM", "MLIR", "libtbb", "libcrypto", "libcuda"})
    EXPECT_EQ(needed.find(library), std::string::npos) << library;
#if !defined(NORMC_SANITIZED)
  EXPECT_EQ(needed.find("libstdc++"), std::string::npos);
#endif
}

TEST_F(Tuner, MeasuresWhatTheHostUsesAndNamesAPackageThatTheRuntimeRuns) {
  pack({"slow", "right", "segfault", "nan_at_the_end"});
  ASSERT_EQ(open(), NORMC_OK) << error();
  request_.rows = 60;  // not what the bundle was made for
  ASSERT_EQ(run(), NORMC_OK) << error();
  EXPECT_EQ(result_.candidates, 4);
  EXPECT_EQ(result_.rejected, 2);
  EXPECT_EQ(result_.from_records, 0);
  EXPECT_GT(result_.default_seconds, 0);
  EXPECT_LE(result_.ratio, 1);
  EXPECT_EQ(result_.won, std::string(result_.schedule) == "right");
  EXPECT_EQ(result_.package, folder_ + "/" + result_.schedule + ".npk");
  const host::Package package(host::Context(), result_.package);
  EXPECT_NO_THROW(host::Plan(package, kProblem));
  int choices = 0;
  for (const Record& record : records()) {
    EXPECT_EQ(record.task.rows, 60);
    EXPECT_GE(record.device.facts.at("cores"), 1);
    choices += record.kind == RecordKind::Choice;
  }
  EXPECT_EQ(choices, 1);
}

TEST_F(Tuner, ASecondStartFindsTheChoiceInTheRecords) {
  pack({"right", "slow"});
  ASSERT_EQ(open(), NORMC_OK) << error();
  ASSERT_EQ(run(), NORMC_OK) << error();
  const std::string schedule = result_.schedule;
  const size_t before = records().size();
  normc_tuner_destroy(tuner_);
  ASSERT_EQ(open(), NORMC_OK) << error();
  ASSERT_EQ(run(), NORMC_OK) << error();
  EXPECT_EQ(result_.from_records, 1);
  EXPECT_EQ(result_.candidates, 0);
  EXPECT_EQ(result_.schedule, schedule);
  EXPECT_GT(result_.default_seconds, 0);
  EXPECT_EQ(records().size(), before);
  request_.fresh = 1;
  ASSERT_EQ(run(), NORMC_OK) << error();
  EXPECT_EQ(result_.from_records, 0);
  EXPECT_GT(records().size(), before);
}

TEST_F(Tuner, AChoiceWhosePackageIsGoneIsNoAnswer) {
  pack({"slow", "right"});
  request_.budget_seconds = 5;  // enough to confirm a win on a busy machine
  ASSERT_EQ(open(), NORMC_OK) << error();
  ASSERT_EQ(run(), NORMC_OK) << error();
  ASSERT_STREQ(result_.schedule, "right");
  std::filesystem::remove(folder_ + "/right.npk");
  ASSERT_EQ(run(), NORMC_OK) << error();
  EXPECT_EQ(result_.from_records, 0);
  EXPECT_STREQ(result_.schedule, "slow");
  EXPECT_TRUE(std::filesystem::exists(result_.package));
}

TEST_F(Tuner, ItsPathsStayWhereItWasOpened) {
  pack({"right"});
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const std::string worker = std::filesystem::relative(NORMC_WORKER).string();
  options_.worker = worker.c_str();
  options_.records = "db.jsonl";
  ASSERT_EQ(normc_tuner_open(".", &options_, &tuner_), NORMC_OK) << error();
  std::filesystem::current_path("/");
  EXPECT_EQ(run(), NORMC_OK) << error();
  EXPECT_TRUE(result_.package && result_.package[0] == '/' && std::filesystem::exists(result_.package));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/db.jsonl"));
  std::filesystem::current_path(before);
}

TEST_F(Tuner, ProgressIsToldAndMayEndTheCall) {
  struct Watch {
    int calls = 0, most;
    std::string phases;
  } watch{.most = 3};
  options_.progress = [](void* ctx, const normc_tuner_status* status) {
    auto& w = *static_cast<Watch*>(ctx);
    EXPECT_STREQ(status->problem, kProblem);
    EXPECT_GE(status->seconds, 0);
    EXPECT_LE(status->done, status->candidates);
    if (!w.phases.ends_with(status->phase)) w.phases += status->phase;
    return int(++w.calls > w.most);
  };
  options_.progress_ctx = &watch;
  pack({"right", "slow", "segfault"});
  ASSERT_EQ(open(), NORMC_OK) << error();
  ASSERT_EQ(run(), NORMC_ABORTED);
  EXPECT_TRUE(
      std::regex_match(error(), std::regex("progress ended the call after [0-9.]+ s and [0-9] candidates; "
                                           "what was measured is in .*/results.jsonl")))
      << error();
  EXPECT_EQ(result_.package, nullptr);
  for (const Record& record : records()) EXPECT_NE(record.kind, RecordKind::Choice);
  const size_t before = records().size();
  EXPECT_GT(before, 0u);
  watch = {.most = 1 << 20};
  ASSERT_EQ(run(), NORMC_OK) << error();
  EXPECT_TRUE(watch.phases.starts_with("startingscreeningracing")) << watch.phases;
  EXPECT_GT(records().size(), before);
}

TEST_F(Tuner, ProgressMustNotRunItsOwnTuner) {
  struct Again {
    normc_tuner*& tuner;
    const normc_tuner_request& request;
    std::string error;
  } again{tuner_, request_, ""};
  options_.progress = [](void* ctx, const normc_tuner_status*) {
    auto& a = *static_cast<Again*>(ctx);
    normc_tuner_result result{.struct_size = sizeof result};
    EXPECT_EQ(normc_tuner_run(a.tuner, &a.request, &result), NORMC_FAILED_PRECONDITION);
    a.error = error();
    return 0;
  };
  options_.progress_ctx = &again;
  pack({"right"});
  ASSERT_EQ(open(), NORMC_OK) << error();
  EXPECT_EQ(run(), NORMC_OK) << error();
  EXPECT_EQ(again.error,
            "this tuner runs already; its progress may end that call, and must not begin another");
  EXPECT_EQ(run(), NORMC_OK) << error();
}

TEST_F(Tuner, TellsItsProblems) {
  pack({"right"}, {50, 60});
  ASSERT_EQ(open(), NORMC_OK) << error();
  const char* problem = nullptr;
  ASSERT_EQ(normc_tuner_problem(tuner_, 0, &problem), NORMC_OK);
  EXPECT_STREQ(problem, kProblem);
  EXPECT_EQ(normc_tuner_problem(tuner_, 1, &problem), NORMC_OUT_OF_RANGE);
  EXPECT_EQ(error(), "problem 1 is past the end; the bundle has 1");
  EXPECT_EQ(normc_tuner_problem(tuner_, 0, nullptr), NORMC_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "problem is null");
  EXPECT_EQ(normc_tuner_problem(nullptr, 0, &problem), NORMC_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "tuner is null");
}

TEST_F(Tuner, RefusesABundleThatIsNone) {
  EXPECT_EQ(open(), NORMC_NOT_FOUND);
  EXPECT_EQ(error(),
            "cannot read " + folder_ + "/plan.json; a bundle is a folder that 'normc tune export' made");
  std::ofstream(folder_ + "/plan.json") << "{\"schema\": 7}";
  EXPECT_EQ(open(), NORMC_FAILED_PRECONDITION);
  EXPECT_EQ(error(), folder_ + "/plan.json is not a plan of this version of normc; export the bundle again");
  std::ofstream(folder_ + "/plan.json") << "nonsense";
  EXPECT_EQ(open(), NORMC_DATA_LOSS);
  EXPECT_TRUE(contains(error(), folder_ + "/plan.json is damaged: "));
  pack({"right"});
  Json plan = Json::parse(std::ifstream(folder_ + "/plan.json"));
  plan["tasks"][0]["features"] = 0;
  std::ofstream(folder_ + "/plan.json") << plan;
  EXPECT_EQ(open(), NORMC_DATA_LOSS);
  EXPECT_TRUE(contains(error(), "task 1: features is 0; it must be a whole number from 1 to "));
  pack({"right"});
  options_.records = "/nowhere/db.jsonl";
  EXPECT_EQ(open(), NORMC_FAILED_PRECONDITION);
  EXPECT_EQ(error(), "cannot write /nowhere/db.jsonl: No such file or directory");
  options_.records = nullptr;
  options_.worker = "/nowhere/normc-worker";
  EXPECT_EQ(open(), NORMC_NOT_FOUND);
  EXPECT_EQ(error(), "options.worker is /nowhere/normc-worker, which is no program");
  EXPECT_EQ(normc_tuner_open(nullptr, nullptr, &tuner_), NORMC_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "bundle is null");
  EXPECT_EQ(normc_tuner_open(folder_.c_str(), nullptr, nullptr), NORMC_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "tuner is null");
  options_.struct_size = 3;
  EXPECT_EQ(open(), NORMC_INVALID_ARGUMENT);
  EXPECT_TRUE(
      contains(error(), "normc_tuner_options.struct_size is 3; set it to sizeof(normc_tuner_options)"));
}

TEST_F(Tuner, FindsTheWorkerBesideTheFolderOfTheLibrary) {
  pack({"right"});
  options_.worker = nullptr;
  EXPECT_EQ(open(), NORMC_OK) << error() << ": build/lib/../bin has it";
}

TEST_F(Tuner, RefusesARequestThatIsWrong) {
  pack({"right"});
  ASSERT_EQ(open(), NORMC_OK) << error();
  const auto refused = [&](normc_status status, const std::string& text) {
    EXPECT_EQ(run(), status);
    EXPECT_TRUE(contains(error(), text));
    request_ = {.struct_size = sizeof request_, .problem = kProblem, .rows = kRows, .threads = 1};
  };
  request_.problem = nullptr;
  refused(NORMC_INVALID_ARGUMENT, "request.problem is null");
  request_.rows = 0;
  refused(NORMC_INVALID_ARGUMENT, "request.rows is 0; it must be 1 or more");
  request_.rows = int64_t(1) << 40;
  refused(NORMC_INVALID_ARGUMENT, "1 thread, warm has more than 2^33 elements");
  request_.segments = -1;
  refused(NORMC_INVALID_ARGUMENT, "request.segments is -1; it must not be negative");
  request_.segments = 8;
  refused(NORMC_INVALID_ARGUMENT,
          "request.segments is 8: layer_norm:forward@f32[*x24] has two dimensions; set it to 0, and "
          "request.rows to all rows");
  request_.threads = -2;
  refused(NORMC_INVALID_ARGUMENT, "request.threads is -2; it must be from 0 to 65536");
  request_.budget_seconds = -1;
  refused(NORMC_INVALID_ARGUMENT,
          "request.budget_seconds is -1; it must be a number of seconds, or 0 for 20");
  request_.budget_seconds = INFINITY;
  refused(NORMC_INVALID_ARGUMENT,
          "request.budget_seconds is inf; it must be a number of seconds, or 0 for 20");
  request_.policy = "hot";
  refused(NORMC_INVALID_ARGUMENT, "request.policy is hot; it must be warm, cold or pipeline");
  request_.fresh = 2;
  refused(NORMC_INVALID_ARGUMENT, "request.fresh is 2; it must be 0 or 1");
  request_.reserved = 1;
  refused(NORMC_INVALID_ARGUMENT, "request.reserved is 1; it must be 0");
  result_.candidates = 7;
  request_.rows = -1;
  refused(NORMC_INVALID_ARGUMENT, "request.rows is -1; it must be 1 or more");
  EXPECT_EQ(result_.candidates, 7) << "a refused call writes nothing";
  request_.problem = "layer_norm:forward@f32[24]";
  refused(NORMC_INVALID_ARGUMENT, "request.problem: ");
  request_.problem = "foo";
  refused(NORMC_INVALID_ARGUMENT, "request.problem: expected ':', found the end");
  request_.problem = "layer_norm:forward@f32[*x25]";
  refused(NORMC_NOT_FOUND,
          "the bundle has no candidates for layer_norm:forward@f32[*x25]; it has "
          "layer_norm:forward@f32[*x24]");
  request_.problem = "no_norm:forward@f32[*x24]";
  refused(NORMC_NOT_FOUND, "the bundle has no candidates for no_norm:forward@f32[*x24]; it has ");
  request_.struct_size = 8;
  refused(NORMC_INVALID_ARGUMENT, "normc_tuner_request.struct_size is 8");
  EXPECT_EQ(normc_tuner_run(tuner_, nullptr, &result_), NORMC_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "request is null");
  EXPECT_EQ(normc_tuner_run(tuner_, &request_, nullptr), NORMC_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "result is null");
  EXPECT_EQ(normc_tuner_run(nullptr, &request_, &result_), NORMC_INVALID_ARGUMENT);
  EXPECT_EQ(error(), "tuner is null");
  EXPECT_TRUE(records().empty()) << "nothing was measured";
}

TEST_F(Tuner, SaysWhyTheDefaultCannotBeMeasured) {
  pack({"nan_at_the_end", "right"});
  ASSERT_EQ(open(), NORMC_OK) << error();
  EXPECT_EQ(run(), NORMC_FAILED_PRECONDITION);
  EXPECT_TRUE(contains(error(),
                       "the default of layer_norm:forward@f32[*x24], 50 rows, 1 thread, warm could not "
                       "be measured here: "));
  EXPECT_TRUE(contains(error(), "nan"));
}

TEST_F(Tuner, TheExampleTunesAndOpensWhatItFound) {
  pack({"right", "slow"});
  int code = -1;
  const std::string command = std::string(NORMC_EXAMPLE_TUNE) + " " + folder_ + " '" + kProblem + "' 50 ";
  const std::string first = outputOf(command + "0.2", &code);
  EXPECT_EQ(code, 0) << first;
  EXPECT_TRUE(contains(first, "racing"));
  EXPECT_TRUE(contains(first, " x the default's "));
  const std::string second = outputOf(command + "0.2", &code);
  EXPECT_EQ(code, 0) << second;
  EXPECT_TRUE(contains(second, ", as the records say"));
  EXPECT_TRUE(contains(outputOf(command + "-1", &code), "request.budget_seconds is -1"));
  EXPECT_EQ(code, 1);
}

}  // namespace
}  // namespace normc::tune::test
