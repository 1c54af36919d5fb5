// Problems as text: one reader and one printer for every folder.
#include <gtest/gtest.h>

#include "runtime/abi/ProblemReader.h"

namespace normc::test {
namespace {

ProblemText parsed(std::string_view text) { return parseProblemText(text).value_or(ProblemText()); }

std::string whyNot(std::string_view text) {
  std::string why;
  EXPECT_FALSE(parseProblemText(text, &why)) << text;
  return why;
}

TEST(ProblemText, HasItsParts) {
  const ProblemText problem =
      parsed("power_norm_released:backward@bf16[8x64x*]{heads=16,mask,layout=channels_first}");
  EXPECT_EQ(problem.norm, "power_norm_released");
  EXPECT_TRUE(problem.isBackward());
  EXPECT_EQ(problem.data, DType::BF16);
  EXPECT_EQ(problem.params, DType::F32);
  EXPECT_TRUE(problem.channelsFirst());
  EXPECT_TRUE(problem.segmented);
  EXPECT_TRUE(problem.mask);
  EXPECT_EQ(problem.segments, 8);
  EXPECT_EQ(problem.features, 64);
  EXPECT_EQ(problem.rows, std::nullopt);
  EXPECT_EQ(problem.bindings, (std::map<std::string, int64_t>{{"heads", 16}}));
}

TEST(ProblemText, CanonicalTextsReadBack) {
  for (const char* text : {
           "layer_norm:forward@f32[*x1024]",
           "layer_norm:forward@f32[64x1024]",
           "power_norm:backward@bf16[0x*]",
           "instance_norm:infer@f64[2x3x4]{params=f32}",
           "batch_norm:infer@f16[8x64x*]{layout=channels_first}",
           "mine:backward@f64[*x*]{a=1,b=2,mask}",
       })
    EXPECT_EQ(parsed(text).text(), text);
}

TEST(ProblemText, KeepsBindingsInOrder) {
  EXPECT_EQ(parsed("n:forward@f32[*x8]{mask,groups=4,blocks=2,params=f16}").text(),
            "n:forward@f32[*x8]{blocks=2,groups=4,mask,params=f16}");
}

TEST(ProblemText, OmitsWhatIsUsual) {
  EXPECT_EQ(parsed("n:forward@f64[*x8]{params=f64,layout=features_last}").text(), "n:forward@f64[*x8]");
}

TEST(ProblemText, WithSizes) {
  EXPECT_EQ(parsed("n:forward@f32[*x8]").withSizes(1, 5).text(), "n:forward@f32[5x8]");
  EXPECT_EQ(parsed("n:forward@f32[*x*x8]").withSizes(2, 5).text(), "n:forward@f32[2x5x8]");
  EXPECT_EQ(parsed("n:forward@f32[*x*x*]{layout=channels_first}").withSizes(2, 5).text(),
            "n:forward@f32[2x*x5]{layout=channels_first}");
}

TEST(ProblemText, TwoDimensionsHaveNoSegments) {
  EXPECT_EQ(parsed("n:forward@f32[*x8]").withSizes(7, 5), parsed("n:forward@f32[5x8]"));
}

TEST(ProblemText, WithoutSizes) {
  EXPECT_EQ(parsed("n:forward@f32[5x8]{mask}").withoutSizes().text(), "n:forward@f32[*x8]{mask}");
  EXPECT_EQ(parsed("n:forward@f32[2x5x8]").withoutSizes().text(), "n:forward@f32[*x*x8]");
  EXPECT_EQ(parsed("n:forward@f32[2x8x5]{layout=channels_first}").withoutSizes().text(),
            "n:forward@f32[*x8x*]{layout=channels_first}");
}

TEST(ProblemText, HeadIsWhatStandsBeforeTheShape) {
  EXPECT_EQ(parsed("batch_norm:infer@f16[8x64x*]{layout=channels_first}").head(), "batch_norm:infer@f16");
}

TEST(ProblemText, RefusalsNameThePart) {
  EXPECT_EQ(whyNot(""),
            "problem '' must have the form NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}, e.g. "
            "layer_norm:forward@f32[*x1024]");
  EXPECT_EQ(
      whyNot("n:sideways@f32[*x8]"),
      "problem 'n:sideways@f32[*x8]': entry 'sideways' must be forward, backward, infer, infer_backward, "
      "forward_reduce, forward_apply, backward_reduce, backward_apply or commit");
  EXPECT_EQ(whyNot("n:forward@i64[*x8]"),
            "problem 'n:forward@i64[*x8]': dtype 'i64' must be f32, f64, bf16 or f16");
  EXPECT_EQ(whyNot("n:forward@f32[*x8]{mask,mask}"),
            "problem 'n:forward@f32[*x8]{mask,mask}': option 'mask' stands twice; leave one of them out");
  EXPECT_EQ(whyNot("n:forward@f32[-1x8]"), "problem 'n:forward@f32[-1x8]': size '-1' must be a number or *");
  EXPECT_EQ(whyNot("n:forward@f32[*x0]"), "problem 'n:forward@f32[*x0]': there must be at least one feature");
}

TEST(ProblemReader, ListsEachFaultWithItsPlace) {
  const ProblemReading reading = readProblem("n:sideways@i8[*x8]{heads=x,mask,mask,layout}");
  std::string found;
  for (const ProblemFault& fault : reading.faults)
    found += std::to_string(fault.kind) + " " + std::string(fault.part.text) + " at " +
             std::to_string(fault.part.offset) + "\n";
  const auto line = [](ProblemFault::Kind kind, const char* rest) { return std::to_string(kind) + rest; };
  EXPECT_EQ(found, line(ProblemFault::Word, " sideways at 2\n") + line(ProblemFault::Word, " i8 at 11\n") +
                       line(ProblemFault::NoNumber, " x at 25\n") +
                       line(ProblemFault::Twice, " mask at 32\n") +
                       line(ProblemFault::NoValue, " layout at 37\n"));
  EXPECT_EQ(reading.problem.features, 8);
}

TEST(ProblemReader, EndsWhereTheGrammarDoes) {
  const ProblemReading reading = readProblem("n:forward@f32[*x8]{mask");
  ASSERT_EQ(reading.faults.size(), 1u);
  EXPECT_EQ(reading.faults[0].kind, ProblemFault::Grammar);
  EXPECT_EQ(reading.faults[0].part.offset, 23u);
  EXPECT_EQ(reading.faults[0].expected, "',' or '}'");
}

TEST(ProblemText, EntriesAndLayoutsHaveNames) {
  for (const Entry each : kEntries) EXPECT_EQ(entryNamed(name(each)), each);
  EXPECT_EQ(entryNamed("train"), std::nullopt);
  for (const Layout each : kLayouts) EXPECT_FALSE(name(each).empty());
}

}  // namespace
}  // namespace normc::test
