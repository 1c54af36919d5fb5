// A worker process from outside, started by hosts of many kinds; programs that are none stand in for bad ones.
#include "autotune/worker/Worker.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

namespace normc::tune::test {
namespace {

constexpr double kPatience = 60;

/// What happens in a host of another kind: a process of its own, which ends with what `body` returns.
int inAHost(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool answers() {
  Worker worker(NORMC_WORKER);
  return worker.ask({{"do", "nothing"}}, kPatience).at("error") == "there is no request `nothing`";
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

}  // namespace
}  // namespace normc::tune::test
