// Tensors of another type than x, with each kind of statistic, judged by the gate. Random specs mix them with
// what else surrounds a norm.
#include <gtest/gtest.h>

#include "tests/Sample.h"
#include "tests/end_to_end/WithClauses.h"

namespace normc {
namespace {

/// Judges the problem with each strategy. Returns the number of kernels.
int judgeAll(const char* norm, const char* clauses, const std::string& rest) {
  const auto problem = problemWith(norm, clauses, rest);
  if (!problem) {
    ADD_FAILURE() << norm << rest << " is not legal";
    return 0;
  }
  int kernels = 0;
  for (const auto strategy : codegen::cpu::strategies(*problem)) {
    expectRight(*problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), strategy));
    ++kernels;
  }
  return kernels;
}

TEST(Outputs, MayHaveAnotherTypeThanTheInput) {
  int kernels = 0;
  for (const char* norm : {"rms_norm", "layer_norm", "batch_norm", "power_norm"})
    for (const char* entry : {":forward@", ":backward@"})
      for (const char* types : {"f32[*x72]{y=bf16}", "bf16[*x72]{y=f32}", "f16[*x72]{mask,y=bf16}"})
        kernels += judgeAll(norm, "", std::string(entry) + types);
  EXPECT_GE(kernels, 24);
}

/// A group may begin at a whole cache line of the wide output and inside one of the narrow output.
TEST(Outputs, OfTwoTypesAreStoredPastTheCachesWhereGroupsFillLinesOfBoth) {
  int kernels = 0;
  for (const char* rest :
       {":forward@bf16[*x576]{groups=4,y=f32}", ":forward@f32[*x576]{groups=4,stream=bf16}",
        ":forward@f32[*x576]{groups=4,y=bf16}"})
    kernels += judgeAll("group_scaling", "residual before", rest);
  EXPECT_GE(kernels, 3);
}

/// With 1500 channels in f32 a piece has 80 of 704 rows, two and a half cache lines of bf16 if it has five of
/// f32.
TEST(Outputs, OfChannelsAreStoredPastTheCachesInWholeLinesOfTheirType) {
  const Problem problem = problemOf("layer_norm:forward@f32[*x1500x*]{layout=channels_first,y=bf16}");
  const codegen::cpu::Isa isa = hostIsa();
  auto schedule = codegen::cpu::defaultSchedule(problem, isa, codegen::Strategy::Resident);
  schedule.vector = isa.vectorBytes / 2, schedule.rows = 4, schedule.unroll = 1, schedule.tile = 4;
  schedule.grain = 1024, schedule.stream = 4, schedule.fetch = true;
  ASSERT_EQ(codegen::cpu::whyIllegal(problem, schedule, isa).value_or(""), "");
  const auto kernel = compiled(problem, schedule, isa);
  ASSERT_TRUE(kernel->plan && kernel->large) << kernel->error;
  const gate::Verdict verdict = kernel->judge(problem, gate::Trial{.extents = {1, 704, 1500}});
  EXPECT_TRUE(verdict.ok) << verdict.text;
}

struct Stream {
  const char *name, *clauses, *types;
};
const Stream kStreams[] = {
    {"F32BesideBf16", "residual before", "bf16[*x72]{stream=f32}"},
    {"F32BesideF16OfBf16", "residual before", "f16[*x*x40]{mask,stream=f32,y=bf16}"},
    {"Bf16BesideF32", "residual before", "f32[*x*]{stream=bf16}"},
    {"F16BesideBf16", "residual before; activation silu", "bf16[*x100]{stream=f16}"},
    {"F64BesideF32", "residual before", "f32[*x72]{stream=f64}"},
    {"F32BesideF64", "residual before", "f64[*x72]{stream=f32}"},
    {"WithoutTheSum", "residual before(stream = no)", "bf16[*x72]{stream=f32}"},
    {"BehindAGate", "gate silu(at = before); residual before", "bf16[*x72]{mask,stream=f32}"}};

using StreamOfNorm = std::tuple<Stream, std::string, std::string>;  ///< and the norm, the entry

/// In the sample each stream meets each norm and each entry, and these each other.
Divided<StreamOfNorm> streamsOfNorms() {
  std::vector<StreamOfNorm> all;
  for (const Stream& stream : kStreams)
    for (const char* norm : {"rms_norm", "layer_norm", "batch_norm", "power_norm", "batch_renorm"})
      for (const char* entry : {"forward", "backward", "infer"}) all.push_back({stream, norm, entry});
  return divided(all, [](const StreamOfNorm& c) {
    return Properties{std::get<0>(c).name, std::get<1>(c), std::get<2>(c)};
  });
}

class Streams : public testing::TestWithParam<StreamOfNorm> {};

TEST_P(Streams, MayHaveAnotherTypeThanTheInput) {
  const auto& [stream, norm, entry] = GetParam();
  EXPECT_GE(judgeAll(norm.c_str(), stream.clauses, ":" + entry + "@" + stream.types), 1);
}

std::string streamName(const testing::TestParamInfo<StreamOfNorm>& info) {
  const auto& [stream, norm, entry] = info.param;
  return std::string(stream.name) + "_" + norm + "_" + entry;
}
NORMC_INSTANTIATE_SAMPLE(Types, Streams, streamsOfNorms(), streamName);

TEST(Streams, OfChannelsMayHaveAnotherTypeThanTheInput) {
  int kernels = 0;
  for (const char* norm : {"batch_norm", "layer_norm", "instance_norm"})
    for (const char* entry : {":forward@", ":backward@"})
      kernels += judgeAll(norm, "residual before",
                          std::string(entry) + "bf16[*x12x*]{layout=channels_first,stream=f32}");
  EXPECT_GE(kernels, 6);
}

/// residual_out may take the memory of the residual: both have the type of the stream.
TEST(Streams, StayInPlace) {
  const auto problem = problemWith("rms_norm", "residual before", ":forward@bf16[*x72]{stream=f32}");
  ASSERT_TRUE(problem);
  const auto schedule = codegen::cpu::defaultSchedule(*problem, hostIsa(), codegen::Strategy::Resident);
  const auto kernel = compiled(*problem, schedule, hostIsa());
  ASSERT_TRUE(kernel->plan) << kernel->error;
  const gate::Verdict verdict =
      gate::judge(kernel->plan, *problem, {.extents = {1, 21, 72}, .placement = {.inPlace = true}});
  EXPECT_TRUE(verdict.ok) << verdict.text;
}

}  // namespace
}  // namespace normc
