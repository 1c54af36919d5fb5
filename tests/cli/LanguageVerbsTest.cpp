// list and fmt
#include <sys/stat.h>

#include <thread>

#include "dsl/Library.h"
#include "tests/cli/Command.h"

namespace normc::cli {
namespace {

using List = CommandTest;
using Fmt = CommandTest;

TEST_F(List, HasALineForEveryBuiltinNorm) {
  const Outcome o = normc({"list"});
  EXPECT_EQ(o.code, 0);
  for (const BuiltinNorm& norm : builtinNorms()) {
    EXPECT_TRUE(contains(o.out, "\n" + norm.name + " "));
    EXPECT_TRUE(contains(o.out, norm.summary + "\n"));
  }
}

TEST_F(List, SaysWhatPrintsTheTextOfANorm) {
  EXPECT_TRUE(contains(normc({"list", "--help"}).out, "normc fmt NAME prints the text of one."));
  EXPECT_TRUE(contains(normc({"fmt", "layer_norm"}).out, "\nnorm layer_norm {\n"));
}

TEST_F(List, GivesStateAndBindingsToPrograms) {
  const auto norms = normc({"list", "--json"}).json()["norms"];
  ASSERT_EQ(norms.size(), builtinNorms().size());
  for (const auto& norm : norms) {
    if (norm["name"] != "power_norm_released") continue;
    EXPECT_EQ(norm["bindings"], nlohmann::json({"heads"}));
    EXPECT_EQ(norm["state"], nlohmann::json({"step", "psi2", "nu"}));
    return;
  }
  FAIL() << "power_norm_released is not listed";
}

constexpr const char* kTwoNorms =
    "norm a { // a comment\n  moment raw\n  reduce rows\n  affine bias,   scale\n}\nnorm b from a { epsilon "
    "2e-3 }\n";

TEST_F(Fmt, PrintsTheCanonicalText) {
  write("two.norm", kTwoNorms);
  const Outcome o = normc({"fmt", "two.norm"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out,
            "norm a {  // a comment\n  reduce    rows\n  affine    scale, bias\n}\n\n"
            "norm b {\n  reduce    rows\n  affine    scale, bias\n  epsilon   0.002\n}\n");
}

TEST_F(Fmt, RefusesAFileWithoutANorm) {
  write("none.norm", "// nothing\n");
  const Outcome o = normc({"fmt", "none.norm"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "none.norm: error: the file holds no norm"));
}

TEST_F(Fmt, IsIdempotentForEveryBuiltinNorm) {
  for (const BuiltinNorm& norm : builtinNorms()) {
    const Outcome once = normc({"fmt", norm.name});
    ASSERT_EQ(once.code, 0) << once.err;
    write("once.norm", once.out);
    EXPECT_EQ(normc({"fmt", "once.norm"}).out, once.out);
  }
}

TEST_F(Fmt, WritesBackToItsOwnFile) {
  write("two.norm", "norm a {\n  moment raw\n  reduce rows\n}\nnorm b from a { epsilon 2e-3 }\n");
  const std::string canonical = normc({"fmt", "two.norm"}).out;
  Outcome o = normc({"fmt", "two.norm", "--check"});
  EXPECT_EQ(o.code, 1) << o.err;
  EXPECT_EQ(o.out, "two.norm is not in its canonical form; normc fmt -i two.norm rewrites it\n");
  EXPECT_NE(read("two.norm"), canonical);
  o = normc({"fmt", "two.norm", "-i"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "two.norm: written\n");
  EXPECT_EQ(read("two.norm"), canonical);
  for (const char* flag : {"-i", "--check"}) {
    o = normc({"fmt", "two.norm", flag});
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.out, "");
  }
  const auto document = normc({"fmt", "two.norm", "--check", "--json"}).json();
  EXPECT_EQ(document, nlohmann::json({{"file", "two.norm"}, {"canonical", true}, {"written", false}}));
  EXPECT_EQ(files(), std::vector<std::string>{"two.norm"});
}

TEST_F(Fmt, LosesNoComment) {
  write("two.norm", kTwoNorms);
  Outcome o = normc({"fmt", "two.norm", "-o", "two.norm"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "  hint: name another file for -o, or use -i to write it back\n"));
  EXPECT_EQ(read("two.norm"), kTwoNorms);
  const std::string text = normc({"fmt", "two.norm"}).out;
  EXPECT_TRUE(contains(text, "norm a {  // a comment\n"));
  EXPECT_EQ(normc({"fmt", "two.norm", "-i"}).code, 0);
  EXPECT_EQ(read("two.norm"), text);
  EXPECT_EQ(normc({"fmt", "two.norm", "--check"}).code, 0);
}

TEST_F(Fmt, KeepsAClauseWithItsComment) {
  const std::string text =
      "norm a {\n  reduce    rows\n  moment    raw  // mean(x^2)\n  divide_by running\n  running   decay = "
      "0.9\n}\n";
  write("a.norm", text);
  EXPECT_EQ(normc({"fmt", "a.norm"}).out, text);
  EXPECT_EQ(normc({"fmt", "a.norm", "--check"}).code, 0);
}

TEST_F(Fmt, HelpSaysWhatTheCanonicalTextKeeps) {
  EXPECT_TRUE(contains(normc({"fmt", "--help"}).out,
                       "resolves 'from', and keeps comments,\nwith the clauses that they belong to.\n"));
}

TEST_F(Fmt, PrintsTheCommentsOfABuiltinNorm) {
  EXPECT_EQ(
      normc({"fmt", "power_norm"}).out,
      "// Power Normalization: every feature by its running root mean square, with an approximate "
      "backward.\n"
      "// Shen et al. 2020, \"PowerNorm: Rethinking Batch Normalization in Transformers\", Definition 3, "
      "Algorithm 2.\n"
      "norm power_norm {\n"
      "  reduce    rows\n"
      "  divide_by running\n"
      "  running   decay = 0.9\n"
      "  backward  approximate(decay = 0.9)  // nu of Eq. 11-13\n"
      "  affine    scale, bias\n"
      "}\n");
}

TEST_F(Fmt, ComparesFilesAlone) {
  for (const char* flag : {"-i", "--check"}) {
    const Outcome o = normc({"fmt", flag, "layer_norm"});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, std::string(flag) + " is for a file; 'layer_norm' is none"));
    EXPECT_TRUE(contains(normc({"fmt", flag, "-"}).err, "is for a file; '-' is none"));
    EXPECT_TRUE(contains(normc({"fmt", flag, "a.norm"}).err, "cannot read a.norm"));
    EXPECT_TRUE(contains(normc({"fmt", flag, "a.norm", "-o", "b.norm"}).err, "and -o exclude each other"));
  }
  EXPECT_TRUE(contains(normc({"fmt", "-i", "--check", "a.norm"}).err, "-i and --check exclude each other"));
}

constexpr const char* kThreeErrors =
    "norm a {\n  reduce rowss\n  centre none\n}\nnorm b {\n  reduce rows\n  padding all\n}\n";

TEST_F(Fmt, ReportsAllErrorsOfAFileWithTheirPlaces) {
  write("bad.norm", kThreeErrors);
  const Outcome o = normc({"fmt", "bad.norm"});
  EXPECT_EQ(o.code, 3);
  EXPECT_EQ(o.out, "");
  EXPECT_TRUE(contains(o.err, "bad.norm:2:10: error: "));
  EXPECT_TRUE(contains(o.err, "  hint: did you mean 'rows'?"));
  EXPECT_TRUE(contains(o.err, "bad.norm:3:3: error: "));
  EXPECT_TRUE(contains(o.err, "bad.norm:7:11: error: "));
}

TEST_F(Fmt, GivesErrorsToPrograms) {
  write("bad.norm", kThreeErrors);
  const Outcome o = normc({"fmt", "bad.norm", "--json"});
  EXPECT_EQ(o.code, 3);
  const auto errors = o.json()["errors"];
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[0]["line"], 2);
  EXPECT_EQ(errors[2]["column"], 11);
}

TEST_F(Fmt, LeavesTheOutputAloneWhereTheFileIsWrong) {
  write("bad.norm", kThreeErrors);
  write("out.norm", "precious");
  EXPECT_EQ(normc({"fmt", "bad.norm", "-o", "out.norm"}).code, 3);
  EXPECT_EQ(read("out.norm"), "precious");
}

TEST_F(Fmt, SaysThatAFileIsNotThere) {
  const Outcome o = normc({"fmt", "none.norm"});
  EXPECT_EQ(o.code, 3);
  EXPECT_EQ(o.err, "normc: error: cannot read none.norm: No such file or directory\n");
}

TEST_F(Fmt, ReadsNothingThatNeverEnds) {
  const Outcome o = normc({"fmt", "/dev/zero"});
  EXPECT_EQ(o.code, 3);
  EXPECT_EQ(o.err, "normc: error: cannot read /dev/zero: it is not a regular file\n");
}

TEST_F(Fmt, ReadsOfAnInputThatNeverEndsAsMuchAsANormMayHave) {
  const Outcome o = normc({"fmt", "-"}, "/dev/zero");
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "standard input: error: the file has more than 262144 bytes [C27]"));
}

TEST_F(Fmt, ReadsTheStandardInputAndPipes) {
  write("two.norm", kTwoNorms);
  const std::string canonical = normc({"fmt", "two.norm"}).out;
  EXPECT_EQ(normc({"fmt", "-"}, folder_ + "/two.norm").out, canonical);
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  std::thread writer([&] { write("pipe", kTwoNorms); });
  EXPECT_EQ(normc({"fmt", "pipe"}).out, canonical);
  writer.join();
}

TEST_F(Fmt, SuggestsTheNearestBuiltinNorm) {
  const Outcome o = normc({"fmt", "layernorm"});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err, "normc: error: there is no norm 'layernorm'\n  hint: did you mean 'layer_norm'?\n");
}

}  // namespace
}  // namespace normc::cli
