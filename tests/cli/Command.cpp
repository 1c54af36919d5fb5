#include "tests/cli/Command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/SHA256.h"

namespace normc::cli {

namespace fs = std::filesystem;

nlohmann::json Outcome::json() const {
  auto document = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(document.is_discarded()) << "no JSON: " << out << err;
  return document;
}

CommandTest::CommandTest() {
  std::string name = (fs::temp_directory_path() / "normc-cli-XXXXXX").string();
  if (!mkdtemp(name.data())) std::abort();
  folder_ = name;
}

CommandTest::~CommandTest() { fs::remove_all(folder_); }

static std::string contentOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

Outcome CommandTest::start(std::vector<std::string> arguments, bool interrupt, const std::string& program,
                           const std::string& input) const {
  arguments.insert(arguments.begin(), "normc");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string out = folder_ + ".out", err = folder_ + ".err";
  const pid_t child = fork();
  if (child == 0) {
    if (chdir(folder_.c_str()) != 0) _exit(126);
    dup2(open(input.c_str(), O_RDONLY), STDIN_FILENO);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    if (interrupt) {  // a blocked signal stays pending through exec
      sigset_t signals;
      sigemptyset(&signals);
      sigaddset(&signals, SIGINT);
      sigprocmask(SIG_BLOCK, &signals, nullptr);
      raise(SIGINT);
    }
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contentOf(out),
                  contentOf(err)};
  fs::remove(out), fs::remove(err);
  return outcome;
}

void CommandTest::write(const std::string& name, const std::string& content) const {
  std::ofstream(fs::path(folder_) / name, std::ios::binary) << content;
}

std::string CommandTest::read(const std::string& name) const { return contentOf(fs::path(folder_) / name); }

bool CommandTest::exists(const std::string& name) const { return fs::exists(fs::path(folder_) / name); }

std::vector<std::string> CommandTest::files() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void CommandTest::package(const std::string& name, std::vector<std::string> problems) const {
  static std::map<std::vector<std::string>, std::string> made;  // many tests begin with the same one
  if (const auto found = made.find(problems); found != made.end()) return write(name, found->second);
  std::vector<std::string> arguments = problems;
  arguments.insert(arguments.begin(), {"compile", "-o", name});
  const Outcome outcome = normc(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  made[problems] = read(name);
}

void CommandTest::rewriteManifest(const std::string& name, const std::string& from,
                                  const std::string& to) const {
  ASSERT_EQ(from.size(), to.size());
  std::string file = read(name);
  uint64_t bytes = 0;
  for (int i = 7; i >= 0; --i) bytes = bytes << 8 | static_cast<unsigned char>(file[16 + i]);
  std::string manifest = file.substr(64, bytes);
  size_t at = manifest.find(from);
  ASSERT_NE(at, manifest.npos) << manifest;
  for (; at != manifest.npos; at = manifest.find(from, at + 1)) manifest.replace(at, from.size(), to);
  file.replace(64, bytes, manifest);
  const auto hash =
      llvm::SHA256::hash(llvm::ArrayRef(reinterpret_cast<const uint8_t*>(manifest.data()), bytes));
  file.replace(24, 32, std::string(hash.begin(), hash.end()));
  write(name, file);
}

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != text.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no\n  " << part << "\nin\n" << text;
}

}  // namespace normc::cli
