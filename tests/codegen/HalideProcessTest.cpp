// Requests to the Halide generator that cannot be served, and a
// generator that fails: one error that says so, with its log.
#include <filesystem>
#include <fstream>

#include "codegen/Package.h"
#include "codegen/targets/Unavailable.h"
#include "codegen/targets/halide/HalideTarget.h"
#include "codegen/targets/halide/Serialize.h"
#include "llvm/Support/JSON.h"
#include "tests/codegen/Support.h"

namespace normc::codegen::halide {
namespace {

std::string messageOf(const Generator& generator, llvm::StringRef request) {
  auto answer = ask(generator, request);
  return answer ? "" : llvm::toString(answer.takeError());
}

//===-- Programs that are no good ---------------------------------------------------===//

/// A shell script in the generator's place, while the object lives.
class Script {
 public:
  explicit Script(const std::string& body)
      : path_(std::filesystem::temp_directory_path() /
              ("normc-halide-" + std::to_string(getpid()) + "-" + std::to_string(serial_++))) {
    std::ofstream(path_) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~Script() { std::filesystem::remove(path_); }
  Generator generator(int seconds = 60) const {
    return {.program = path_.string(), .seconds = seconds, .megabytes = 256};
  }

 private:
  static inline int serial_ = 0;
  std::filesystem::path path_;
};

TEST(HalideProcess, ACrashIsAnErrorWithTheLog) {
  const Script script("echo 'half way there' >&2; kill -SEGV $$");
  EXPECT_EQ(
      messageOf(script.generator(), "{}"),
      "the Halide generator crashed: Segmentation fault (it may use 256 MiB); it said:\nhalf way there\n");
}

TEST(HalideProcess, TakingTooLongIsAnError) {
  const Script script("echo 'thinking' >&2; exec sleep 60");
  EXPECT_EQ(messageOf(script.generator(1), "{}"),
            "the Halide generator took more than 1 s and was stopped; it said:\nthinking\n");
}

TEST(HalideProcess, AnExitCodeIsAnError) {
  const Script script("echo 'no memory left' >&2; exit 1");
  EXPECT_EQ(messageOf(script.generator(), "{}"),
            "the Halide generator failed with exit code 1; it said:\nno memory left\n");
}

TEST(HalideProcess, MoreMemoryThanAllowedIsAnError) {
  const Script script("exec python3 -c 'x = bytearray(1 << 30)'");
  const std::string message = messageOf(script.generator(), "{}");
  EXPECT_NE(message.find("the Halide generator failed with exit code 1; it said:\n"), std::string::npos)
      << message;
  EXPECT_NE(message.find("MemoryError"), std::string::npos) << message;
}

TEST(HalideProcess, AnAnswerThatIsNoneIsAnError) {
  const Script words("echo 'all good'; echo code > $1");
  EXPECT_EQ(messageOf(words.generator(), "{}"),
            "the Halide generator gave no facts: 'all good\n' is not JSON");
  const Script empty("echo '{}'");
  EXPECT_EQ(messageOf(empty.generator(), "{}"), "the Halide generator wrote nothing");
}

TEST(HalideProcess, AProgramThatIsNotThereIsAnError) {
  EXPECT_EQ(messageOf({.program = "/nowhere/normc-halide-gen"}, "{}"),
            "the Halide generator '/nowhere/normc-halide-gen' cannot be started: No such file or directory");
}

TEST(HalideProcess, OnlyWhatTheGeneratorSaysItselfIsOfTheRequest) {
  const auto unavailable = [](const Generator& generator) {
    auto answer = ask(generator, "{}");
    const bool is = answer.errorIsA<Unavailable>();
    llvm::consumeError(answer.takeError());
    return is;
  };
  EXPECT_FALSE(unavailable(Script("exit 1").generator()));
  EXPECT_FALSE(unavailable(Script("exit 3").generator()));
  EXPECT_TRUE(unavailable(Script("exit 2").generator())) << "a bad request is one of another build";
  EXPECT_TRUE(unavailable(Script("exit 127").generator()))
      << "what the loader says where a library is missing";
  EXPECT_TRUE(unavailable(Script("kill -SEGV $$").generator()));
  EXPECT_TRUE(unavailable(Script("exec sleep 60").generator(1)));
  EXPECT_TRUE(unavailable(Script("echo '{}'").generator()));
  EXPECT_TRUE(unavailable({.program = "/nowhere/normc-halide-gen"}));
}

TEST(HalideProcess, AnErrorStaysOfItsKindOnItsWayThroughAPackage) {
  const Script script("exit 127");
  auto target = targetWith(script.generator(), "x86-64-v3");
  ASSERT_TRUE(bool(target)) << llvm::toString(target.takeError());
  auto package = buildPackage(
      {{.problem = problemOf("rms_norm:infer@f32[*x64]"), .target = *target, .schedule = "resident"}});
  ASSERT_FALSE(bool(package));
  EXPECT_TRUE(package.errorIsA<Unavailable>());
  EXPECT_EQ(llvm::toString(package.takeError()),
            "rms_norm:infer@f32[*x64] for x86-64-v3: the Halide generator '" + script.generator().program +
                "' cannot be started");
}

TEST(HalideProcess, SaysItsVersionOrWhyNot) {
  auto version = versionOf(Script("[ $1 = --version ] && echo '{\"halide\":\"21.0.0\"}'").generator());
  ASSERT_TRUE(bool(version)) << llvm::toString(version.takeError());
  EXPECT_EQ(*version, "21.0.0");
  const Script missing("echo 'libHalide.so: no such file' >&2; exit 127"), silent("echo '{}'");
  EXPECT_EQ(llvm::toString(versionOf(missing.generator()).takeError()),
            "the Halide generator '" + missing.generator().program +
                "' cannot be started; it said:\nlibHalide.so: no such file\n");
  EXPECT_EQ(llvm::toString(versionOf(silent.generator()).takeError()),
            "the Halide generator does not say which Halide it is; it said:\n{}\n");
}

TEST(HalideProcess, ReadsTheRequestAndWritesTheFile) {
  const Script script("cat > $1; echo '{\"halide\":\"21\"}'; echo 'a note' >&2");
  auto answer = ask(script.generator(), "the request");
  ASSERT_TRUE(bool(answer)) << llvm::toString(answer.takeError());
  EXPECT_EQ(answer->output, "the request");
  EXPECT_EQ(answer->facts, "{\"halide\":\"21\"}\n");
  EXPECT_EQ(answer->log, "a note\n");
}

TEST(HalideProcess, AFailureNamesTheProblem) {
  const Script script("echo 'no such thing' >&2; exit 3");
  auto target = targetWith(script.generator(), "x86-64-v3");
  ASSERT_TRUE(bool(target)) << llvm::toString(target.takeError());
  auto kernel =
      llvm::cantFail((*target)->bind(problemOf("rms_norm:infer@f32[*x64]"), "resident"))->compile("k");
  ASSERT_FALSE(bool(kernel));
  EXPECT_EQ(
      llvm::toString(kernel.takeError()),
      "rms_norm:infer@f32[*x64] for x86-64-v3: the Halide generator refuses; it said:\nno such thing\n");
}

//===-- Requests that are no good -----------------------------------------------------===//

class HalideRequest : public testing::Test {
 protected:
  void SetUp() override {
    auto generator = findGenerator();
    if (!generator) GTEST_SKIP() << llvm::toString(generator.takeError());
    generator_ = *generator;
    Planned plan(problemOf("layer_norm:forward@f32[*x64]"), Strategy::Resident);
    expandMath(plan.kernel());
    request_ = requestOf(plan.kernel(), {.strategy = Strategy::Resident}, isaOf("x86-64-v3"), "object");
  }
  /// The request with one piece of its text replaced.
  std::string changed(const std::string& from, const std::string& to) const {
    const size_t at = request_.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return std::string(request_).replace(at, from.size(), to);
  }
  /// The last line of the log.
  std::string said(const std::string& request) const {
    std::string message = messageOf(generator_, request);
    if (!message.empty() && message.back() == '\n') message.pop_back();
    return message.substr(message.rfind('\n') + 1);
  }
  Generator generator_;
  std::string request_;
};

TEST_F(HalideRequest, IsServedAsItIs) { EXPECT_EQ(said(request_), ""); }

TEST_F(HalideRequest, MustBeJson) {
  EXPECT_EQ(said("kernel, please"), "bad request: the request is not JSON");
  EXPECT_EQ(said(request_.substr(0, request_.size() / 2)), "bad request: the request is not JSON");
  EXPECT_EQ(
      messageOf(generator_, "[]"),
      "the Halide generator failed with exit code 2; it said:\nbad request: request is not an object\n");
}

TEST_F(HalideRequest, OfANewerSchemaIsRefused) {
  EXPECT_EQ(said(changed("\"schema\":7", "\"schema\":8")),
            "bad request: the request has schema 8; this normc-halide-gen reads 7: normc and "
            "normc-halide-gen have to be of the "
            "same build");
}

TEST_F(HalideRequest, MustBeComplete) {
  EXPECT_EQ(said(changed("\"problem\"", "\"riddle\"")), "bad request: request.kernel has no \"problem\"");
  EXPECT_EQ(said(changed("\"vector\":8", "\"vector\":\"wide\"")),
            "bad request: request.schedule.vector is not an integer");
  EXPECT_EQ(said(changed("\"vector\":8", "\"vector\":0")),
            "bad request: request.schedule.vector is 0; legal: a power of two up to 65536");
  EXPECT_EQ(said(changed("\"vector\":8", "\"vector\":17")),
            "bad request: request.schedule.vector is 17; legal: a power of two up to 65536");
  EXPECT_EQ(said(changed("\"object\"", "\"wasm\"")),
            "bad request: request.emit is 'wasm'; known: object, halide, stmt, asm");
}

TEST_F(HalideRequest, MustNameWhatItDeclares) {
  EXPECT_EQ(
      said(changed("\"op\":\"probe\",\"reads\":[\"x\"]", "\"op\":\"probe\",\"reads\":[\"z\"]")),
      "bad request: request.kernel.phases[0].body[0].body[0].reads names a tensor 'z', which the kernel does "
      "not declare");
}

TEST_F(HalideRequest, ForAnotherTargetIsRefused) {
  EXPECT_EQ(messageOf(generator_, changed("\"x86-64-v3\"", "\"riscv64\"")),
            "the Halide generator refuses; it said:\ncannot be expressed: the target 'riscv64'; known: "
            "x86-64-v3, x86-64-v4, x86-64-v4-bf16, "
            "aarch64\n");
}

TEST_F(HalideRequest, WithAnUnknownOperationIsRefused) {
  EXPECT_EQ(said(changed("\"op\":\"divf\"", "\"op\":\"tanh\"")), "cannot be expressed: the operation 'tanh'");
  EXPECT_EQ(said(changed("\"op\":\"mulf\"", "\"op\":\"tanh\"")),
            "cannot be expressed: the operation 'tanh' in a sweep");
}

TEST(HalideGenerator, IsForCpus) {
  auto target = targetWith({}, "sm_90");
  ASSERT_FALSE(bool(target));
  EXPECT_EQ(llvm::toString(target.takeError()),
            "the Halide generator makes kernels for CPUs; sm_90 is for --generator mlir");
}

}  // namespace
}  // namespace normc::codegen::halide
