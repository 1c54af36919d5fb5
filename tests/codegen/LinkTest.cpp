// lld as a library: what it refuses is an error of the call, and the process goes on.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "codegen/targets/Unavailable.h"
#include "codegen/targets/cpu/Link.h"
#include "codegen/targets/cpu/Object.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

namespace normc::codegen::cpu {
namespace {

Isa isa() { return llvm::cantFail(findIsa("x86-64-v3")); }

/// Returns the object of a function with `body`, which may call expf.
std::string objectOf(const std::string& body) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic said;
  auto ir = llvm::parseAssemblyString(
      "declare float @expf(float)\ndefine float @kernel(float %x) {\n" + body + "}\n", said, context);
  return llvm::cantFail(machineCode(*ir, isa(), Emit::Object));
}
std::string doubling() { return objectOf("  %y = fadd float %x, %x\n  ret float %y\n"); }

/// Returns why the objects cannot be linked, after "unavailable: " if the machine is the cause.
std::string refusalOf(const std::string& object) {
  auto made = linkShared({object}, isa());
  if (made) return "it was linked";
  const bool unavailable = made.errorIsA<Unavailable>();
  return (unavailable ? "unavailable: " : "") + llvm::toString(made.takeError());
}

TEST(Link, NamesTheFunctionThatIsNotDefined) {
  const std::string refusal = refusalOf(objectOf("  %y = call float @expf(float %x)\n  ret float %y\n"));
  EXPECT_TRUE(refusal.starts_with(
      "linking x86-64-v3 kernels failed: ld.lld: error: undefined symbol: expf\n>>> referenced by "))
      << refusal;
}

TEST(Link, WorksAfterWhatIsFatalToTheLinker) {
  const std::string object = doubling(), shared = llvm::cantFail(linkShared({object}, isa()));
  EXPECT_EQ(
      refusalOf(""),
      "linking x86-64-v3 kernels failed: ld.lld: error: target emulation unknown: -m or at least one .o "
      "file required\n");
  const std::string refusal = refusalOf(object.substr(0, object.size() / 2));
  EXPECT_TRUE(refusal.starts_with("linking x86-64-v3 kernels failed: ld.lld: error: ") &&
              refusal.find("section table goes past the end of file") != std::string::npos)
      << refusal;
  EXPECT_EQ(llvm::cantFail(linkShared({object}, isa())), shared);
}

TEST(Link, WithoutRoomIsNoFaultOfTheKernel) {
  const std::string object = doubling(), shared = llvm::cantFail(linkShared({object}, isa()));
  ASSERT_LT(object.size(), shared.size());  // so that the object can be written and its library cannot
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{object.size(), before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  const std::string refusal = refusalOf(object);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_TRUE(
      refusal.starts_with("unavailable: linking x86-64-v3 kernels failed: ld.lld: error: failed to ") &&
      refusal.ends_with(": File too large\n"))
      << refusal;
}

TEST(Link, ThreadsWaitForEachOther) {
  const std::string object = doubling(), shared = llvm::cantFail(linkShared({object}, isa()));
  std::vector<std::string> made(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& result : made)
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) result = llvm::cantFail(linkShared({object}, isa()));
      });
  }
  for (const std::string& result : made) EXPECT_EQ(result, shared);
}

/// lld sets the options of LLVM to their defaults.
TEST(Link, ChangesNothingOfWhatIsCompiledAfterIt) {
  const std::string before = doubling();
  llvm::cantFail(linkShared({before}, isa()));
  EXPECT_EQ(doubling(), before);
}

}  // namespace
}  // namespace normc::codegen::cpu
