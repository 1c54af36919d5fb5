#include <gtest/gtest.h>

#include "bench/cpu/Options.h"
#include "dsl/Library.h"

namespace normc::bench {
namespace {

Machine machine() {
  Machine m;
  m.processors = 4, m.secondCache = 1 << 20, m.lastCache = 32 << 20, m.memory = int64_t(24) << 30;
  return m;
}

/// Reads `words` as a command line; what was printed is in `text`.
struct Read {
  explicit Read(std::vector<std::string> words) {
    words.insert(words.begin(), "normc-bench");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    run = readOptions(int(argv.size()), argv.data(), machine(), options, exitCode);
    text = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  }
  Options options;
  bool run;
  int exitCode = 0;
  std::string text;
};

TEST(BenchOptions, DefaultsAreOneThreadAndAll) {
  const Read read({});
  EXPECT_TRUE(read.run);
  EXPECT_EQ(read.options.threads, (std::vector<int>{1, 4}));
  EXPECT_EQ(read.options.features.size(), 6u);
}

TEST(BenchOptions, ReadsListsBetweenCommas) {
  const Read read({"--features", "7,768", "--rows", "128,memory", "--dtype", "bf16", "--threads", "2,all",
                   "--entries", "infer", "--bind", "heads=8"});
  ASSERT_TRUE(read.run) << read.text;
  EXPECT_EQ(read.options.features, (std::vector<int64_t>{7, 768}));
  ASSERT_EQ(read.options.rows.size(), 2u);
  EXPECT_EQ(read.options.rows[0].of(768, DType::F32, machine()), 128);
  EXPECT_EQ(read.options.rows[1].kind, Rows::Memory);
  EXPECT_EQ(read.options.types, std::vector<DType>{DType::BF16});
  EXPECT_EQ(read.options.threads, (std::vector<int>{2, 4}));
  EXPECT_EQ(read.options.entries, std::vector<Entry>{Entry::Infer});
  EXPECT_EQ(read.options.bindings.at("heads"), 8);
}

TEST(BenchOptions, QuickKeepsWhatIsAskedFor) {
  EXPECT_EQ(Read({"--quick"}).options.features, std::vector<int64_t>{768});
  EXPECT_EQ(Read({"--quick", "--features", "64"}).options.features, std::vector<int64_t>{64});
}

TEST(BenchOptions, AroundKeepsWhatIsAskedFor) {
  const Options all = Read({"--around"}).options;
  EXPECT_EQ(all.norms.front(), "rms_norm_residual");
  EXPECT_EQ(all.features, (std::vector<int64_t>{768, 1024, 2048, 4096, 8192, 16384}));
  EXPECT_EQ(all.entries.size(), 3u);
  EXPECT_EQ(all.spatial, 256);
  const Options some = Read({"--around", "--norms", "resnet_tail", "--features", "64"}).options;
  EXPECT_EQ(some.norms, std::vector<std::string>{"resnet_tail"});
  EXPECT_EQ(some.features, std::vector<int64_t>{64});
}

TEST(BenchOptions, CliffsBringTheirNeighbours) {
  EXPECT_EQ(Read({"--cliffs", "--features", "65,768,7"}).options.features,
            (std::vector<int64_t>{7, 64, 65, 128, 768, 832}));
  EXPECT_EQ(Read({"--target", "x86-64-v3"}).options.target, "x86-64-v3");
}

TEST(BenchOptions, OnlyProcessorsAreTargets) {
  const Read gpu({"--target", "sm_90"}), unknown({"--target", "avx9"});
  EXPECT_FALSE(gpu.run);
  EXPECT_NE(gpu.text.find("--target: sm_90 is no processor's; normc-gpu measures those"), std::string::npos)
      << gpu.text;
  EXPECT_FALSE(unknown.run);
  EXPECT_NE(unknown.text.find("--target: unknown target 'avx9'; known: host, x86-64-v3"), std::string::npos)
      << unknown.text;
}

TEST(BenchOptions, ChannelsFirstPartsRowsIntoImages) {
  const Options first = Read({"--channels-first"}).options;
  EXPECT_EQ(first.shapeOf(7840, 64, true).segments, 10);
  EXPECT_EQ(first.shapeOf(7840, 64, true).rows, 784);
  EXPECT_EQ(first.shapeOf(100, 64, true).rows, 100);
  const Options last = Read({"--spatial", "49"}).options;
  EXPECT_EQ(last.shapeOf(98, 64, true).text(), "2 x 49 x 64");
  EXPECT_EQ(Options().shapeOf(98, 64, false).text(), "98 x 64");
  const Read none({"--spatial", "0"});
  EXPECT_FALSE(none.run);
  EXPECT_NE(none.text.find("--spatial: Value 0 not in range"), std::string::npos) << none.text;
}

TEST(BenchOptions, OnlyNormsThatNeedSegmentsHaveThemAround) {
  const Options around = Read({"--around"}).options, asked = Read({"--around", "--spatial", "49"}).options;
  EXPECT_FALSE(around.partsIntoSegments(**findNorm("rms_norm_residual")));
  EXPECT_TRUE(around.partsIntoSegments(**findNorm("adaptive_layer_norm")));
  EXPECT_TRUE(asked.partsIntoSegments(**findNorm("rms_norm_residual")));
  EXPECT_EQ(around.shapeOf(512, 64, true).text(), "2 x 256 x 64");
  EXPECT_EQ(around.shapeOf(512, 64, false).text(), "512 x 64");
}

TEST(BenchOptions, RowsFitTheMachine) {
  const int64_t row = 1024 * 4;
  EXPECT_EQ(Rows{Rows::Cache}.of(1024, DType::F32, machine()) * row, 256 << 10);
  EXPECT_EQ(Rows{Rows::Memory}.of(1024, DType::F32, machine()) * row, int64_t(128) << 20);
  Machine small = machine();
  small.memory = 640 << 20;
  EXPECT_EQ(Rows{Rows::Memory}.of(1024, DType::F32, small) * row, 64 << 20);
  Machine huge = machine();
  huge.lastCache = int64_t(1) << 30, huge.memory = int64_t(1) << 40;
  EXPECT_EQ(Rows{Rows::Memory}.of(1024, DType::F32, huge) * row, int64_t(2) << 30);
  EXPECT_EQ(Rows{Rows::Cache}.of(1 << 20, DType::F64, machine()), 1);
}

TEST(BenchOptions, EachNumberOfRowsIsAPlaceOfItsOwn) {
  const Read read({"--rows", "8,1024,cache,memory"});
  ASSERT_TRUE(read.run) << read.text;
  std::vector<std::string> places;
  for (const Rows& rows : read.options.rows) places.push_back(rows.place());
  EXPECT_EQ(places, (std::vector<std::string>{"8 rows", "1024 rows", "in cache", "in memory"}));
}

TEST(BenchOptions, ErrorsNameTheValueAndWhatIsLegal) {
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"--rows", "0"}, "'0' is no number of rows, and neither cache nor memory; give one from 1"},
      {{"--features", "7x"}, "'7x' is no number of features; give one from 1"},
      {{"--threads", "none"}, "'none' is no number of threads, and not all; give one from 1"},
      {{"--dtype", "f8"}, "'f8' is none of bf16, f16, f32, f64"},
      {{"--entries", "back"}, "'back' is none of backward, forward, infer, infer_backward"},
      {{"--bind", "heads"}, "--bind 'heads' must be NAME=NUMBER"},
      {{"--bind", "heads=no"}, "'no' is no number of heads; give one from 1"},
  };
  for (const auto& [words, message] : wrong) {
    const Read read(words);
    EXPECT_FALSE(read.run);
    EXPECT_EQ(read.exitCode, 2);
    EXPECT_NE(read.text.find(message), std::string::npos) << read.text;
  }
}

}  // namespace
}  // namespace normc::bench
