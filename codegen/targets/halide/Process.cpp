#include "codegen/targets/halide/Process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "codegen/targets/TemporaryFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

extern char** environ;

namespace normc::codegen::halide {

static constexpr llvm::StringRef kName = "normc-halide-gen";

llvm::Expected<Generator> findGenerator() {
  std::array<char, 4096> self;
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size());
  if (length > 0) {
    llvm::SmallString<256> beside(llvm::StringRef(self.data(), length));
    llvm::sys::path::remove_filename(beside);
    llvm::sys::path::append(beside, kName);
    if (llvm::sys::fs::can_execute(beside)) return Generator{beside.str().str()};
  }
  if (auto found = llvm::sys::findProgramByName(kName)) return Generator{*found};
  return llvm::createStringError(kName.str() +
                                 " is neither beside this program nor on the PATH: this build has no Halide "
                                 "generator. `scripts/setup --halide` "
                                 "installs Halide 21; then configure and build again");
}

namespace {

struct Ended {
  int status = 0;
  bool timedOut = false;
};

/// Waits for a child without a signal handler: many threads may do so at once.
Ended waitFor(pid_t child, int seconds) {
  Ended ended;
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (handle >= 0) {
    pollfd event{handle, POLLIN, 0};
    int ready;
    while ((ready = poll(&event, 1, seconds * 1000)) < 0 && errno == EINTR) {
    }
    ended.timedOut = ready == 0;
    close(handle);
  }
  if (ended.timedOut) kill(child, SIGKILL);
  while (waitpid(child, &ended.status, 0) < 0 && errno == EINTR) {
  }
  return ended;
}

void limitMemory(pid_t child, int64_t megabytes) {
  const rlim_t bytes = static_cast<rlim_t>(megabytes) << 20;
  const rlimit memory{bytes, bytes}, core{0, 0};
  prlimit(child, RLIMIT_AS, &memory, nullptr);
  prlimit(child, RLIMIT_CORE, &core, nullptr);
}

}  // namespace

llvm::Expected<Answer> ask(const Generator& generator, llvm::StringRef request) {
  std::vector<TemporaryFile> files;
  for (auto [suffix, content] : {std::pair<llvm::StringRef, llvm::StringRef>{"json", request},
                                 {"out", ""},
                                 {"facts", ""},
                                 {"log", ""}}) {
    auto file = TemporaryFile::create(suffix, content);
    if (!file) return file.takeError();
    files.push_back(std::move(*file));
  }
  const TemporaryFile &input = files[0], &output = files[1], &facts = files[2], &log = files[3];

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input.path().str().c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, facts.path().str().c_str(), O_WRONLY | O_TRUNC, 0);
  posix_spawn_file_actions_addopen(&actions, 2, log.path().str().c_str(), O_WRONLY | O_TRUNC, 0);
  std::string program = generator.program, path = output.path().str();
  char* arguments[] = {program.data(), path.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  auto error = [&](const std::string& what) {
    const std::string said = log.read();
    return llvm::createStringError("the Halide generator " + what +
                                   (said.empty() ? "" : "; it said:\n" + said));
  };
  if (failed) return error("'" + program + "' cannot be started: " + std::strerror(failed));
  limitMemory(child, generator.megabytes);

  const Ended ended = waitFor(child, generator.seconds);
  if (ended.timedOut)
    return error("took more than " + std::to_string(generator.seconds) + " s and was stopped");
  if (WIFSIGNALED(ended.status))
    return error("crashed: " + std::string(strsignal(WTERMSIG(ended.status))) + " (it may use " +
                 std::to_string(generator.megabytes) + " MiB)");
  const int code = WEXITSTATUS(ended.status);
  if (code == 3) return error("refuses");
  if (code == 127) return error("'" + program + "' cannot be started");
  if (code != 0) return error("failed with exit code " + std::to_string(code));
  Answer answer{output.read(), facts.read(), log.read()};
  auto json = llvm::json::parse(answer.facts);
  if (!json) {
    llvm::consumeError(json.takeError());
    return error("gave no facts: '" + answer.facts.substr(0, 80) + "' is not JSON");
  }
  if (answer.output.empty()) return error("wrote nothing");
  return answer;
}

}  // namespace normc::codegen::halide
