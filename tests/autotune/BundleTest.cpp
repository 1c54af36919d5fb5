// A tuning in a folder: packed by hand, measured without a compiler, stopped and resumed.
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "autotune/measure/Machine.h"
#include "autotune/tune/Bundle.h"
#include "tests/autotune/Wild.h"

namespace normc::tune::test {
namespace {

class Bundle : public WildTest {
 protected:
  BundleRun run() {
    BundleRun run;
    run.folder = folder_;
    run.records = folder_ + "/results.jsonl";
    run.worker = NORMC_WORKER;
    run.budget = 3;
    run.say = [this](const std::string& line) { said_ += line + "\n"; };
    return run;
  }
  std::string error() {
    try {
      runBundle(run());
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }
  std::string said_;
};

TEST_F(Bundle, APlanIsReadAsItWasWritten) {
  pack({"right", "slow"});
  const auto plan = readPlan(folder_);
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan.at(0).setting.task, setting().task);
  EXPECT_EQ(plan.at(0).setting.spec, setting().spec);
  EXPECT_EQ(plan.at(0).points.at(1).schedule, "slow");
  EXPECT_EQ(plan.at(0).points.at(1).at, landscapeOf({"right", "slow"})[1].at);
}

TEST_F(Bundle, IsMeasuredAndLeavesRecordsOfThisMachine) {
  pack({"right", "slow", "nan_at_the_end"});
  EXPECT_EQ(runBundle(run()), BundleEnd::Whole);
  EXPECT_NE(said_.find("layer_norm:forward@f32[*x24], 50 rows, 1 thread, warm: 3 candidates, "),
            std::string::npos)
      << said_;
  const auto database = readDatabase(folder_ + "/results.jsonl");
  ASSERT_TRUE(database);
  int choices = 0, wrong = 0;
  for (const Record& record : database->records) {
    choices += record.kind == RecordKind::Choice;
    wrong += record.status == Status::Wrong;
    EXPECT_GE(record.device.facts.at("cores"), 1);
    EXPECT_FALSE(record.device.name.empty());
  }
  EXPECT_EQ(choices, 1);
  EXPECT_EQ(wrong, 1);
}

TEST_F(Bundle, GoesOnFromItsRecords) {
  pack({"right", "slow", "nan_at_the_end"});
  BundleRun stopped = run();
  int asked = 0;
  stopped.stop = [&] { return ++asked > 3; };
  EXPECT_EQ(runBundle(stopped), BundleEnd::Stopped);
  EXPECT_EQ(said_, "") << "a task that was stopped is not decided";
  EXPECT_EQ(runBundle(run()), BundleEnd::Whole);
  const auto database = readDatabase(folder_ + "/results.jsonl");
  EXPECT_EQ(std::count_if(database->records.begin(), database->records.end(),
                          [](const Record& r) { return r.status == Status::Wrong; }),
            1)
      << "a rejected candidate is not tried again";
}

TEST_F(Bundle, WhatIsDecidedIsNotMeasuredAgain) {
  pack({"right", "slow"});
  ASSERT_EQ(runBundle(run()), BundleEnd::Whole);
  const int64_t before = readDatabase(folder_ + "/results.jsonl")->counts.records;
  said_.clear();
  BundleRun again = run();
  again.worker = folder_ + "/none";
  EXPECT_EQ(runBundle(again), BundleEnd::Whole);
  EXPECT_NE(said_.find("known from its records, "), std::string::npos) << said_;
  EXPECT_EQ(readDatabase(folder_ + "/results.jsonl")->counts.records, before);
  again = run();
  again.fresh = true;
  EXPECT_EQ(runBundle(again), BundleEnd::Whole);
  EXPECT_GT(readDatabase(folder_ + "/results.jsonl")->counts.records, before);
}

/// Makes a worker that finds every candidate right. A call takes 1 ms, and `seconds` by the second candidate.
void writeWorker(const std::string& path, const std::string& seconds) {
  std::ofstream(path) << "#!/bin/sh\nsecond=" << seconds << R"sh(
while read -r request; do
  case $request in
    *'"do":"task"'*) echo '{"protocol":1}' ;;
    *'"do":"gate"'*) echo '{"trials":1,"worst":0.5,"failure":""}' ;;
    *'"do":"sample"'*)
      rounds=${request##*'"rounds":'}
      rounds=${rounds%%[!0-9]*}
      names=${request#*'"names":['}
      samples=
      for name in $(echo "${names%%]*}" | tr -d '"' | tr , ' '); do
        case $name in 0) time=1e-3 ;; *) time=$second ;; esac
        times=$time
        for round in $(seq 2 "$rounds"); do times=$times,$time; done
        samples=$samples,[$times]
      done
      echo "{\"samples\":[${samples#,}],\"disturbed\":0,\"accepted\":0,\"loops\":[1,1],\"patience\":0}" ;;
    *) echo '{}' ;;
  esac
done
)sh";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

TEST_F(Bundle, WhatIsMeasuredAfreshKeepsTheChoiceWhereItIsClose) {
  pack({"right", "slow"});
  BundleRun told = run();
  told.worker = folder_ + "/worker";
  told.budget = 60;
  const auto chosen = [&](const std::string& seconds) {
    writeWorker(told.worker, seconds);
    said_.clear();
    EXPECT_EQ(runBundle(told), BundleEnd::Whole);
    return said_.substr(said_.rfind(' ') + 1);
  };
  EXPECT_EQ(chosen("0.9e-3"), "slow\n");
  told.fresh = true;
  EXPECT_EQ(chosen("0.985e-3"), "slow\n") << "it was chosen, and 1.5 % are enough to keep that";
  EXPECT_EQ(chosen("0.995e-3"), "right\n");
  EXPECT_EQ(chosen("0.975e-3"), "right\n") << "the default stayed, and 2.5 % are too little to change that";
}

TEST_F(Bundle, HasNoMoreThreadsThanThereAreProcessors) {
  pack({"right"});
  Json plan = Json::parse(std::ifstream(folder_ + "/plan.json"));
  plan["tasks"][0]["threads"] = kMostThreads;
  std::ofstream(folder_ + "/plan.json") << plan;
  EXPECT_EQ(runBundle(run()), BundleEnd::Whole);
  const auto database = readDatabase(folder_ + "/results.jsonl");
  ASSERT_FALSE(database->records.empty());
  for (const Record& record : database->records)
    EXPECT_EQ(record.task.threads, measure::thisMachine().processors);
}

TEST_F(Bundle, EndsWhenItsTimeIsOverAndTheRestIsForTheNextRun) {
  pack({"right", "slow"}, {50, 51, 52});
  BundleRun brief = run();
  double now = 100;
  brief.seconds = 1, brief.clock = [&] { return now; };
  brief.say = [&](const std::string& line) {
    said_ += line + "\n";
    now += 1.5;
  };
  EXPECT_EQ(runBundle(brief), BundleEnd::OutOfTime);
  EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), 1) << "one that had begun is ended: " << said_;
  EXPECT_EQ(runBundle(run()), BundleEnd::Whole);
  int choices = 0;
  for (const Record& record : readDatabase(folder_ + "/results.jsonl")->records)
    choices += record.kind == RecordKind::Choice;
  EXPECT_EQ(choices, 3);
}

TEST_F(Bundle, SaysWhatIsWrongWithAFolder) {
  EXPECT_EQ(error(),
            "cannot read " + folder_ + "/plan.json; a bundle is a folder that 'normc tune export' made");
  std::ofstream(folder_ + "/plan.json") << "{\"schema\": 7}";
  EXPECT_EQ(error(), folder_ + "/plan.json is not a plan of this version of normc; export the bundle again");
  std::ofstream(folder_ + "/plan.json") << "{\"schema\": 1, \"tasks\": [{}]}";
  const auto damaged = [&](const std::string& what) {
    return folder_ + "/plan.json is damaged: " + what + "; export the bundle again";
  };
  EXPECT_EQ(error(), damaged("task 1 is not one that 'normc tune export' writes"));
  for (const char* text : {"", "[]", "3", "nonsense"}) {
    std::ofstream(folder_ + "/plan.json") << text;
    EXPECT_EQ(error(), damaged("it is no JSON object")) << text;
  }
  for (const char* text : {"{}", "{\"schema\": 1}", "{\"schema\": 1, \"tasks\": {}}"}) {
    std::ofstream(folder_ + "/plan.json") << text;
    EXPECT_EQ(error(), damaged("it has no schema, or no list of tasks")) << text;
  }
}

TEST_F(Bundle, SaysWhichValueOfAPlanIsNone) {
  const auto with = [&](const char* key, const Json& value) {
    pack({"right"});
    Json plan = Json::parse(std::ifstream(folder_ + "/plan.json"));
    Json& task = plan["tasks"][0];
    (key == std::string("at") ? task["candidates"][0][key] : task[key]) = value;
    std::ofstream(folder_ + "/plan.json") << plan;
    return error();
  };
  const auto damaged = [&](const std::string& what) {
    return folder_ + "/plan.json is damaged: task 1: " + what + "; export the bundle again";
  };
  for (const char* key : {"features", "rows", "segments"})
    EXPECT_EQ(with(key, 0),
              damaged(std::string(key) + " is 0; it must be a whole number from 1 to 8589934592"));
  EXPECT_EQ(with("rows", 1.5), damaged("rows is 1.5; it must be a whole number from 1 to 8589934592"));
  EXPECT_EQ(with("rows", uint64_t(-1)),
            damaged("rows is 18446744073709551615; it must be a whole number from 1 to 8589934592"));
  EXPECT_EQ(
      with("rows", int64_t(1) << 33),
      damaged("layer_norm:forward@f32[*x24], 8589934592 rows, 1 thread, warm has more than 2^33 elements"));
  EXPECT_EQ(with("threads", -1), damaged("threads is -1; it must be a whole number from 0 to 65536"));
  EXPECT_EQ(with("policy", "hot"), damaged("policy is hot; it must be warm, cold or pipeline"));
  const Json many(std::vector<int>(33, 1));  // each place beside a point is looked at
  for (const Json& at :
       {Json::array(), Json::array({-1}), Json::array({0, int64_t(1) << 32}), Json::array({0, 256}), many})
    EXPECT_EQ(with("at", at),
              damaged("at is " + at.dump() + "; it must be 1 to 32 whole numbers from 0 to 255"));
  EXPECT_EQ(with("norm", std::string(16385, 'n')),
            damaged("norm has 16385 bytes; it must have at most 16384"));
  EXPECT_EQ(with("toolchain", {{"llvm", std::string(1025, '2')}}),
            damaged("llvm has 1025 bytes; it must have at most 1024"));
  EXPECT_EQ(with("toolchain", {{std::string(1025, 'l'), "22"}}),
            damaged("toolchain has a name of 1025 bytes; it must have at most 1024"));
  Json::object_t tools;
  for (int i = 0; i < 65; ++i) tools[std::to_string(i)] = "1";
  EXPECT_EQ(with("toolchain", tools), damaged("toolchain has 65 entries; it must have at most 64"));
}

TEST_F(Bundle, APlanThatIsNoJsonIsSaid) {
  pack({"right"});
  std::ifstream file(folder_ + "/plan.json");
  const std::string plan{std::istreambuf_iterator<char>(file), {}};
  const auto with = [&](const std::string& text) {
    std::ofstream(folder_ + "/plan.json") << text;
    return error();
  };
  const std::string none = folder_ + "/plan.json is damaged: it is no JSON object; export the bundle again";
  const size_t rows = plan.find("\"rows\": ") + 8;
  // Code that prints a value recurses as deep as it is nested.
  EXPECT_EQ(with(plan.substr(0, rows) + std::string(200000, '[') + std::string(200000, ']') +
                 plan.substr(plan.find(',', rows))),
            none);
  EXPECT_EQ(with(plan + std::string(1, '\0')), none);
  EXPECT_EQ(with(plan.substr(0, plan.size() / 2)), none);
}

TEST_F(Bundle, PathsOfAPlanStayInItsFolder) {
  const auto with = [&](const std::string& package) {
    pack({"right", "slow"});
    Json plan = Json::parse(std::ifstream(folder_ + "/plan.json"));
    plan["tasks"][0]["candidates"][1]["package"] = package;
    std::ofstream(folder_ + "/plan.json") << plan;
    return error();
  };
  for (const std::string& path : {std::string(), std::string("/etc/passwd"), folder_ + "/slow.npk",
                                  std::string("../slow.npk"), std::string("0/../../slow.npk")})
    EXPECT_EQ(with(path), folder_ + "/plan.json is damaged: task 1: package is \"" + path +
                              "\"; it must be the path of a file in the folder; export the bundle again");
  const std::string outside = folder_ + "-outside.npk";
  pack({"right", "slow"});
  std::filesystem::rename(folder_ + "/slow.npk", outside);
  std::filesystem::create_symlink(outside, folder_ + "/slow.npk");
  EXPECT_EQ(error(),
            folder_ + "/slow.npk is a link to a file outside of the bundle; export the bundle again");
  std::filesystem::remove(folder_ + "/slow.npk");
  std::filesystem::remove(outside);
}

TEST_F(Bundle, APackageIsThatOfItsCandidate) {
  const auto errorOf = [&](const std::function<void()>& confuse) {
    pack({"right", "slow", "nan_at_the_end"});
    std::filesystem::remove(folder_ + "/results.jsonl");
    confuse();
    return error();
  };
  const auto names = [&](const std::string& file) {
    return folder_ + "/" + file + ".npk is not the package that plan.json names; export the bundle again";
  };
  const std::string right = folder_ + "/right.npk", slow = folder_ + "/slow.npk",
                    away = folder_ + "/away.npk";
  EXPECT_EQ(errorOf([&] {
              std::filesystem::rename(right, away);
              std::filesystem::rename(slow, right);
              std::filesystem::rename(away, slow);
            }),
            names("right"))
      << "two that were swapped";
  EXPECT_EQ(errorOf([&] {
              std::filesystem::copy_file(right, slow, std::filesystem::copy_options::overwrite_existing);
            }),
            names("slow"));
  for (const std::string bytes :
       {"", "normc", "no package, but longer than a header of one, by a few bytes ......"})
    EXPECT_EQ(errorOf([&] { std::ofstream(slow, std::ios::binary) << bytes; }), names("slow"));
  EXPECT_EQ(errorOf([&] { std::filesystem::resize_file(slow, 100); }), names("slow"));
  EXPECT_EQ(errorOf([&] {
              std::ifstream in(slow, std::ios::binary);
              std::string bytes{std::istreambuf_iterator<char>(in), {}};
              bytes.at(bytes.find("\x7f"
                                  "ELF") +
                       100) ^= 1;
              std::ofstream(slow, std::ios::binary) << bytes;
            }),
            names("slow"))
      << "its code was changed";
  for (const Record& record : readDatabase(folder_ + "/results.jsonl")->records)
    EXPECT_EQ(record.schedule.find("slow"), std::string::npos) << "nothing is recorded of it";
}

TEST_F(Bundle, RecordsAreNoFileOfIt) {
  pack({"right", "slow"});
  for (const std::string file : {"plan.json", "right.npk", "slow.npk"}) {
    const auto bytes = [&] {
      std::ifstream in(folder_ + "/" + file, std::ios::binary);
      return std::string{std::istreambuf_iterator<char>(in), {}};
    };
    const std::string before = bytes();
    BundleRun same = run();
    same.records = folder_ + "/./" + file;
    try {
      runBundle(same);
      ADD_FAILURE() << file;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "the records " + same.records + " are the file " + file +
                                               " of the bundle; name another file");
    }
    EXPECT_EQ(bytes(), before);
  }
}

TEST_F(Bundle, TheProgramReadsItsCommandLineWhole) {
  pack({"right"});
  const auto said = [&](const std::string& arguments, int want) {
    int code = -1;
    const std::string text = outputOf(NORMC_BUNDLE_PROGRAM " " + arguments, &code);
    EXPECT_EQ(code, want) << arguments << ": " << text;
    return text.substr(0, text.find('\n'));
  };
  const std::string error = "normc-bundle: error: ", folder = folder_ + " ";
  for (const std::string text : {"inf", "nan", "1e300", "-1", "0", "2x", "soon", "''"})
    for (const std::string flag : {"--budget", "--seconds"})
      EXPECT_EQ(said(folder + flag + " " + text, 2),
                error + flag + " is '" + (text == "''" ? "" : text) +
                    "'; it must be a time above 0 and of 10000 hours at most, e.g. 20s, 500ms or 2m");
  for (const std::string text : {"abc", "cuda", "cuda:", "cuda:x", "1x", "-1", "99999999999"})
    EXPECT_EQ(said(folder + "--device " + text, 2),
              error + "--device is '" + text + "'; it must be the number of a CUDA device, e.g. 0 or cuda:0");
  EXPECT_EQ(said(folder + "--budget", 2), error + "--budget needs a value");
  EXPECT_EQ(said(folder + "--fast", 2), error + "there is no flag --fast");
  EXPECT_EQ(said(folder + "b", 2), error + "one folder at a time, not also b");
  EXPECT_EQ(said("", 2), error + "no folder is given");
  EXPECT_EQ(said("/nowhere", 3),
            error + "cannot read /nowhere/plan.json; a bundle is a folder that 'normc tune export' made");
  const std::string measured = said(folder + "--budget 200ms --device cuda:1", 0);
  EXPECT_TRUE(measured.starts_with("layer_norm:forward@f32[*x24], 50 rows, 1 thread, warm: 1 candidates, "))
      << measured;
}

TEST_F(Bundle, ACandidateThatIsMissingIsPassedOverWithoutARecordAgainstIt) {
  pack({"right", "slow"});
  std::filesystem::rename(folder_ + "/slow.npk", folder_ + "/away.npk");
  EXPECT_EQ(runBundle(run()), BundleEnd::Whole);
  const auto ofSlow = [&] {
    const auto database = readDatabase(folder_ + "/results.jsonl");
    return std::count_if(database->records.begin(), database->records.end(), [](const Record& r) {
      return r.kind == RecordKind::Trial && r.schedule.find("slow") != r.schedule.npos;
    });
  };
  EXPECT_EQ(ofSlow(), 0);
  std::filesystem::rename(folder_ + "/away.npk", folder_ + "/slow.npk");
  BundleRun fresh = run();
  fresh.fresh = true;
  EXPECT_EQ(runBundle(fresh), BundleEnd::Whole);
  EXPECT_GT(ofSlow(), 0) << "it is back";
}

}  // namespace
}  // namespace normc::tune::test
