#include "runtime/hosts/common/Compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>
#include <vector>

#include "runtime/normc.h"

extern char** environ;

namespace normc::hosts {
namespace {

namespace fs = std::filesystem;

/// Returns a name without characters that a shell or a file system treats in a special way.
std::string fileName(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  std::string result;
  for (const unsigned char c : text) {
    hash = (hash ^ c) * 0x100000001b3;
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain || (!result.empty() && result.back() != '_')) result += plain ? char(c) : '_';
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return result.substr(0, 80) + "-" + digits;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Runs a program, with what it says in a file. Returns why it failed, empty if it succeeded, and whether it
/// was started.
std::pair<std::string, bool> run(const std::vector<std::string>& words, const fs::path& said) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t child;
  const int failed = posix_spawnp(&child, words[0].c_str(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed) return {"cannot start " + words[0] + ": " + std::generic_category().message(failed), false};
  int status = 0;
  pid_t ended;
  do ended = waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0) return {{}, true};
  const std::string reason = contents(said);
  if (!reason.empty()) return {reason, true};
  const std::string how = ended < 0           ? " ended with an exit code that this process did not get"
                          : WIFEXITED(status) ? " ended with exit code " + std::to_string(WEXITSTATUS(status))
                                              : " was ended by signal " + std::to_string(WTERMSIG(status));
  return {words[0] + how + ", and said nothing", true};
}

}  // namespace

Compiler::Result Compiler::compile(const std::string& problem, const std::string& norm,
                                   const std::string& source) const {
  Result result;
  const fs::path folder = fs::path(cache) / normc_version() / normc_cpu_isa();
  const fs::path package = folder / (fileName(problem + (source.empty() ? "" : "_" + source)) + ".npk");
  result.package = package;
  std::error_code ignored;
  if (fs::exists(package, ignored)) return result;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    result.error = "cannot make the folder " + folder.string() + ": " + failed.message();
    return result;
  }
  const auto begin = std::chrono::steady_clock::now();
  const fs::path said = package.string() + "." + std::to_string(getpid()) + ".log";
  std::vector<std::string> words{program, "compile", problem};
  if (!norm.empty()) words.push_back(norm);
  for (const char* word : {"--target", "host", "--threads", "1", "-o", package.c_str()})
    words.push_back(word);
  std::tie(result.error, result.ran) = run(words, said);
  // A package has its name once it is whole, so it counts more than an exit code, which a host that ignores
  // SIGCHLD does not get.
  if (fs::exists(package, ignored))
    result.error.clear();
  else if (result.error.empty())
    result.error = program + " succeeded, and there is no " + package.string();
  fs::remove(said, ignored);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace normc::hosts
