#include "bench/cpu/Torch.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

extern char** environ;

namespace normc::bench {

using nlohmann::json;

/// One prepared call in the other process, which also takes the time.
class TorchPeer::Peer : public Contestant {
 public:
  Peer(TorchPeer& torch, int id, int threads) : torch_(torch), id_(id), threads_(threads) {}
  double run(int64_t calls) override {
    const json answer = json::parse(torch_.ask(json{{"do", "run"}, {"id", id_}, {"calls", calls}}.dump()));
    if (answer.contains("error")) throw std::runtime_error("PyTorch: " + answer["error"].get<std::string>());
    return answer.at("seconds");
  }
  bool spins() const override { return threads_ > 1; }

 private:
  TorchPeer& torch_;
  int id_, threads_;
};

TorchPeer::TorchPeer(const std::string& python, const std::string& script) {
  int toPeer[2], fromPeer[2];
  if (pipe2(toPeer, O_CLOEXEC) != 0) {
    whyMissing_ = "could not be started: no pipe";
    return;
  }
  if (pipe2(fromPeer, O_CLOEXEC) != 0) {
    close(toPeer[0]);
    close(toPeer[1]);
    whyMissing_ = "could not be started: no pipe";
    return;
  }
  signal(SIGPIPE, SIG_IGN);  // a peer that dies is an answer, not our end
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, toPeer[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fromPeer[1], STDOUT_FILENO);
  // Bound to cores, so that its threads are not woken on one and the same.
  std::string program = python, argument = script, bind = "OMP_PROC_BIND=true";
  std::vector<char*> environment = {bind.data()};
  for (char** variable = environ; *variable; ++variable) environment.push_back(*variable);
  environment.push_back(nullptr);
  char* arguments[] = {program.data(), argument.data(), nullptr};
  const int failed = posix_spawnp(&pid_, program.c_str(), &actions, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(toPeer[0]);
  close(fromPeer[1]);
  toPeer_ = toPeer[1];
  fromPeer_ = fdopen(fromPeer[0], "r");
  if (failed) {
    pid_ = -1;
    whyMissing_ = "could not be started: no program " + python;
    return;
  }
  const json answer = json::parse(ask(R"({"do": "hello"})"));
  if (answer.contains("version"))
    version_ = "PyTorch " + answer["version"].get<std::string>();
  else
    whyMissing_ = answer.value("error", "gave no version") + " (scripts/setup --torch installs it)";
}

TorchPeer::~TorchPeer() {
  if (toPeer_ >= 0) close(toPeer_);  // the end of its input ends it
  if (fromPeer_) fclose(fromPeer_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

std::string TorchPeer::ask(const std::string& command) {
  const std::string line = command + "\n";
  char* answer = nullptr;
  size_t capacity = 0;
  std::string result = R"({"error": "ended unexpectedly"})";
  // A peer that ended may have said why before it read anything, so a failed write is no reason not to
  // listen.
  (void)!write(toPeer_, line.data(), line.size());
  if (getline(&answer, &capacity, fromPeer_) > 0 && json::accept(answer)) result = answer;
  free(answer);
  return result;
}

std::unique_ptr<Contestant> TorchPeer::make(const Problem& problem, const Shape& shape, int threads,
                                            bool compiled, std::string& why) {
  if (version_.empty()) {
    why = whyMissing_;
    return nullptr;
  }
  const json answer = json::parse(ask(json{
      {"do", "prepare"},
      {"norm", problem.spec->name},
      {"entry", name(problem.entry)},
      {"dtype", name(problem.data)},
      {"segments", shape.segments},
      {"rows", shape.rows},
      {"features", shape.features},
      {"channels_first", shape.layout == Layout::ChannelsFirst},
      {"groups", problem.groups(problem.spec->pre ? problem.spec->pre->groups : problem.spec->groups)},
      {"epsilon", problem.spec->epsilon},
      {"threads", threads},
      {"compiled", compiled}}.dump()));
  if (answer.contains("id")) return std::make_unique<Peer>(*this, answer["id"], threads);
  why = answer.value("error", "gave no answer");
  return nullptr;
}

double TorchPeer::seconds() {
  return version_.empty() ? 0 : json::parse(ask(R"({"do": "time"})")).value("seconds", 0.0);
}

void TorchPeer::clear() {
  if (!version_.empty()) ask(R"({"do": "clear"})");
}

}  // namespace normc::bench
