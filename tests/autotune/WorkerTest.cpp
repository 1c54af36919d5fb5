// A worker process from outside, started by hosts of many kinds; programs that are none stand in for bad
// ones.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include "autotune/worker/Worker.h"

namespace normc::tune::test {
namespace {

constexpr double kPatience = 60;

/// Runs `body` in a process of its own, as in a host. Returns its exit code.
int inAHost(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool answers() {
  Worker worker(NORMC_WORKER);
  return worker.ask({{"do", "nothing"}}, kPatience).at("error") == "there is no request 'nothing'";
}

TEST(Worker, AnswersAHostThatClosedItsStandardFiles) {
  for (int closed = 1; closed < 8; ++closed)
    EXPECT_EQ(inAHost([&] {
                for (int file = 0; file < 3; ++file)
                  if (closed >> file & 1) close(file);
                return answers() ? 0 : 1;
              }),
              0)
        << closed;
}

/// A shell script in the place of a worker.
class Stranger {
 public:
  explicit Stranger(const std::string& script) {
    std::string form = (std::filesystem::temp_directory_path() / "normc-worker-XXXXXX").string();
    folder_ = mkdtemp(form.data());
    std::ofstream(program()) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
  }
  ~Stranger() { std::filesystem::remove_all(folder_); }
  std::string program() const { return folder_ + "/worker"; }

 private:
  std::string folder_;
};

TEST(Worker, WaitsForAnswersHoweverLongItMay) {
  Worker worker(NORMC_WORKER);
  for (const double seconds : {1e11, 1e30, double(INFINITY)})
    EXPECT_NO_THROW(worker.ask({{"do", "nothing"}}, seconds)) << seconds;
}

TEST(Worker, LoadsNothingBeforeItHasATask) {
  Worker worker(NORMC_WORKER);
  EXPECT_EQ(worker.ask({{"do", "load"}, {"name", "0"}, {"package", "none.npk"}}, kPatience).at("error"),
            "a candidate is loaded for a task; send the task first");
}

TEST(Worker, SaysWhatWasPrintedInsteadOfAnAnswer) {
  const Stranger kernel(
      "read request; echo '{}'; read request; printf 'hello\\033 from a kernel\\n'; sleep 60");
  Worker worker(kernel.program());
  worker.ask({{"do", "task"}}, kPatience);
  try {
    worker.ask({{"do", "gate"}}, kPatience);
    FAIL();
  } catch (const Worker::Ended& ended) {
    EXPECT_EQ(ended.how,
              "answered 'hello? from a kernel', which is no JSON object: a kernel may have printed it; so it "
              "was ended");
    EXPECT_FALSE(ended.hung);
  }
  EXPECT_FALSE(worker.alive());
}

TEST(Worker, AnotherProgramIsNoCandidatesFault) {
  const Stranger stranger("read request; printf '%0300d\\n' 7; sleep 60");
  Worker worker(stranger.program());
  try {
    worker.ask({{"do", "task"}}, kPatience);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), stranger.program() +
                                " is no normc-worker, or that of another version of normc: it answered '" +
                                std::string(200, '0') + "...'");
  }
}

TEST(Worker, SaysWhereItsExitCodeIsNotKnown) {
  const auto ended = [](bool first) {
    std::signal(SIGCHLD, SIG_IGN);
    Worker worker(NORMC_WORKER);
    if (!first) worker.ask({{"do", "nothing"}}, kPatience);
    kill(worker.process(), SIGSEGV);
    try {
      worker.ask({{"do", "nothing"}}, kPatience);
      return 1;
    } catch (const Worker::Ended& end) {
      return !first && end.how ==
                           "ended with an exit code that is not known, since this process ignores SIGCHLD or "
                           "waits for every child"
                 ? 0
                 : 2;
    } catch (const std::runtime_error&) {  // a worker without any answer may never have started
      return first ? 0 : 3;
    }
  };
  EXPECT_EQ(inAHost([&] { return ended(false); }), 0);
  EXPECT_EQ(inAHost([&] { return ended(true); }), 0);
}

}  // namespace
}  // namespace normc::tune::test
