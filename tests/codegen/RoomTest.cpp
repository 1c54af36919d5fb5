// A machine without room for temporary files says nothing of the kernels that are compiled on it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "codegen/targets/TemporaryFile.h"
#include "codegen/targets/Unavailable.h"
#include "codegen/targets/cpu/CpuIsa.h"
#include "codegen/targets/cpu/Object.h"

namespace normc::codegen {
namespace {

namespace fs = std::filesystem;

/// A variable of the environment, until the end of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// No file grows beyond some bytes, as on a disk that is full.
class Full {
 public:
  Full() {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit little{16, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &little);
  }
  ~Full() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

struct Refusal {
  bool unavailable;
  std::string text;
};

template <typename T>
Refusal refusalOf(llvm::Expected<T> made) {
  if (made) return {false, "it was made"};
  const bool unavailable = made.template errorIsA<Unavailable>();
  return {unavailable, llvm::toString(made.takeError())};
}

TEST(Room, ATemporaryFileThatCannotBeWrittenIsAnError) {
  std::optional<Refusal> refusal;
  {
    const Full full;
    refusal = refusalOf(TemporaryFile::create("o", std::string(1 << 20, 'x')));
  }
  EXPECT_TRUE(refusal->unavailable);
  EXPECT_TRUE(refusal->text.starts_with("cannot write /") && refusal->text.ends_with(".o: File too large"))
      << refusal->text;
}

TEST(Room, NamesTheFolderThatIsNotThere) {
  const Variable folder("TMPDIR", "/nowhere");
  const Refusal refusal = refusalOf(TemporaryFile::create("o"));
  EXPECT_TRUE(refusal.unavailable);
  EXPECT_EQ(refusal.text, "cannot create a temporary file in /nowhere: No such file or directory");
}

/// Returns the result of linking with a linker that prints a text and exits with 1.
Refusal linkedBy(const std::string& saying) {
  std::string form = (fs::temp_directory_path() / "normc-room-XXXXXX").string();
  const fs::path folder = mkdtemp(form.data()), linker = folder / "ld.lld-22";
  std::ofstream(linker) << "#!/bin/sh\necho '" << saying << "' >&2\nexit 1\n";
  fs::permissions(linker, fs::perms::owner_all);
  const Variable path("PATH", folder.string() + ":/usr/bin:/bin");
  const Refusal refusal =
      refusalOf(cpu::linkShared({"no object"}, llvm::cantFail(cpu::findIsa("x86-64-v3"))));
  fs::remove_all(folder);
  return refusal;
}

TEST(Room, ALinkerWithoutRoomIsNoFaultOfTheKernel) {
  const Refusal full = linkedBy("ld.lld: error: failed to write output: No space left on device");
  EXPECT_TRUE(full.unavailable);
  EXPECT_EQ(
      full.text,
      "linking x86-64-v3 kernels failed: ld.lld: error: failed to write output: No space left on device\n");
  const Refusal silent = linkedBy("");
  EXPECT_TRUE(silent.unavailable);
  EXPECT_TRUE(silent.text.find("/ld.lld-22 ended with exit code 1 and said nothing") != std::string::npos)
      << silent.text;
  EXPECT_FALSE(linkedBy("ld.lld: error: undefined symbol: expf").unavailable);
}

}  // namespace
}  // namespace normc::codegen
