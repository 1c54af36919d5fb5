// Folders for candidates: gone with their owner, however it ended, and never before.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/cli/Command.h"
#include "tools/normc/Failure.h"
#include "tools/normc/TemporaryFolder.h"

namespace normc::cli {
namespace {

namespace fs = std::filesystem;

/// A process of its own that makes a folder with a file in it, and waits to be killed.
class Owner {
 public:
  explicit Owner(const std::string& parent) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    process_ = fork();
    if (process_ == 0) {
      const TemporaryFolder folder(parent);
      std::ofstream(folder.path() + "/0.npk") << "code";
      const std::string path = folder.path();
      if (write(ends[1], path.data(), path.size()) < 0) _exit(1);
      for (;;) pause();
    }
    char path[4096];
    path_.assign(path, size_t(std::max<ssize_t>(0, read(ends[0], path, sizeof path))));
    close(ends[0]), close(ends[1]);
  }
  ~Owner() { kill(); }
  void kill() {
    if (process_ > 0) ::kill(process_, SIGKILL), waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  const std::string& path() const { return path_; }

 private:
  pid_t process_ = -1;
  std::string path_;
};

using Folder = CommandTest;

TEST_F(Folder, IsGoneWithItsObject) {
  std::optional<TemporaryFolder> folder(folder_);
  const std::string path = folder->path();
  EXPECT_TRUE(fs::is_directory(path));
  folder.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(Folder, OfAKilledProcessIsRemovedByTheNextOne) {
  Owner killed(folder_);
  ASSERT_TRUE(fs::exists(killed.path() + "/0.npk"));
  killed.kill();
  EXPECT_TRUE(fs::exists(killed.path() + "/0.npk"));
  const TemporaryFolder next(folder_);
  EXPECT_FALSE(fs::exists(killed.path()));
  EXPECT_TRUE(fs::exists(next.path()));
}

TEST_F(Folder, OfAProcessThatLivesStays) {
  const Owner living(folder_);
  const TemporaryFolder mine(folder_), another(folder_);
  EXPECT_TRUE(fs::exists(living.path() + "/0.npk"));
  EXPECT_TRUE(fs::exists(mine.path()));
}

TEST_F(Folder, RemovesNothingThatIsNotItsOwn) {
  fs::create_directory(folder_ + "/elsewhere");
  fs::create_directory(folder_ + "/normc-other-1");
  write("normc-tune-file", "a file of that name");
  fs::create_directory_symlink(folder_ + "/elsewhere", folder_ + "/normc-tune-link");
  const TemporaryFolder mine(folder_);
  for (const char* name : {"elsewhere", "normc-other-1", "normc-tune-file", "normc-tune-link"})
    EXPECT_TRUE(fs::exists(folder_ + "/" + name)) << name;
}

TEST_F(Folder, ThatCannotBeMadeIsSaid) {
  try {
    const TemporaryFolder folder(folder_ + "/nowhere");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.diagnostics().at(0).message,
              "cannot make a folder for candidates in " + folder_ + "/nowhere: No such file or directory");
  }
}

TEST_F(Folder, OfTheSystemThatIsNotThereIsSaid) {
  const char* const given = std::getenv("TMPDIR");
  const std::string before = given ? given : "";
  setenv("TMPDIR", (folder_ + "/nowhere").c_str(), 1);
  try {
    const TemporaryFolder folder;
    ADD_FAILURE();
  } catch (const Failure& failure) {
    const Diagnostic& said = failure.diagnostics().at(0);
    EXPECT_TRUE(contains(said.message,
                         "there is no folder for temporary files, TMPDIR is '" + folder_ + "/nowhere': "));
    EXPECT_EQ(said.hint, "let TMPDIR name a folder that can be written");
  }
  if (given)
    setenv("TMPDIR", before.c_str(), 1);
  else
    unsetenv("TMPDIR");
}

}  // namespace
}  // namespace normc::cli
