// A machine without room for temporary files says nothing of the kernels that are compiled on it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <optional>

#include "codegen/targets/TemporaryFile.h"
#include "codegen/targets/Unavailable.h"

namespace normc::codegen {
namespace {

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

}  // namespace
}  // namespace normc::codegen
