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
#include "codegen/targets/Unavailable.h"
#include "codegen/targets/halide/generator/Protocol.h"
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
                                 "generator. 'scripts/setup --halide' "
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

llvm::Error failure(const std::string& what, const std::string& log, bool ofTheRequest = false) {
  const std::string text = "the Halide generator " + what + (log.empty() ? "" : "; it said:\n" + log);
  return ofTheRequest ? llvm::createStringError(text) : llvm::make_error<Unavailable>(text);
}

/// With one argument, `request` as its standard input; without its output.
llvm::Expected<Answer> run(const Generator& generator, std::string argument, llvm::StringRef request) {
  std::vector<TemporaryFile> files;
  for (auto [suffix, content] :
       {std::pair<llvm::StringRef, llvm::StringRef>{"json", request}, {"facts", ""}, {"log", ""}}) {
    auto file = TemporaryFile::create(suffix, content);
    if (!file) return file.takeError();
    files.push_back(std::move(*file));
  }
  const TemporaryFile &input = files[0], &facts = files[1], &log = files[2];

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input.path().str().c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, facts.path().str().c_str(), O_WRONLY | O_TRUNC, 0);
  posix_spawn_file_actions_addopen(&actions, 2, log.path().str().c_str(), O_WRONLY | O_TRUNC, 0);
  std::string program = generator.program;
  char* arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return failure("'" + program + "' cannot be started: " + std::strerror(failed), "");
  limitMemory(child, generator.megabytes);

  const Ended ended = waitFor(child, generator.seconds);
  if (ended.timedOut)
    return failure("took more than " + std::to_string(generator.seconds) + " s and was stopped", log.log());
  if (WIFSIGNALED(ended.status))
    return failure("crashed: " + std::string(strsignal(WTERMSIG(ended.status))) + " (it may use " +
                       std::to_string(generator.megabytes) + " MiB)",
                   log.log());
  const int code = WEXITSTATUS(ended.status);
  if (code == normc::halide::kRefused) return failure("refuses", log.log(), /*ofTheRequest=*/true);
  if (code == 127) return failure("'" + program + "' cannot be started", log.log());
  if (code != normc::halide::kDone)
    return failure("failed with exit code " + std::to_string(code), log.log(),
                   /*ofTheRequest=*/code == normc::halide::kFailed);
  auto said = facts.read();
  if (!said) return said.takeError();
  return Answer{"", std::move(*said), log.log()};
}

llvm::Expected<llvm::json::Value> factsOf(const Answer& answer) {
  auto json = llvm::json::parse(answer.facts);
  if (json) return json;
  llvm::consumeError(json.takeError());
  return failure("gave no facts: '" + answer.facts.substr(0, 80) + "' is not JSON", answer.log);
}

}  // namespace

llvm::Expected<Answer> ask(const Generator& generator, llvm::StringRef request) {
  auto output = TemporaryFile::create("out", "");
  if (!output) return output.takeError();
  auto answer = run(generator, output->path().str(), request);
  if (!answer) return answer;
  auto made = output->read();
  if (!made) return made.takeError();
  answer->output = std::move(*made);
  if (auto facts = factsOf(*answer); !facts) return facts.takeError();
  if (answer->output.empty()) return failure("wrote nothing", answer->log);
  return answer;
}

llvm::Expected<std::string> versionOf(const Generator& generator) {
  auto answer = run(generator, "--version", "");
  if (!answer) return answer.takeError();
  auto facts = factsOf(*answer);
  if (!facts) return facts.takeError();
  const llvm::json::Object* object = facts->getAsObject();
  const auto version = object ? object->getString("halide") : std::nullopt;
  if (!version) return failure("does not say which Halide it is", answer->facts);
  return version->str();
}

}  // namespace normc::codegen::halide
