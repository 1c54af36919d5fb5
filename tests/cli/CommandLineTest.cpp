// Behaviour that all verbs have in common: help, exit codes, the form of errors.
#include <algorithm>

#include "tests/cli/Command.h"
#include "tools/normc/Cli.h"

namespace normc::cli {
namespace {

using CommandLine = CommandTest;

TEST_F(CommandLine, HelpNamesEveryVerbAndExitCode) {
  const Outcome o = normc({"--help"});
  EXPECT_EQ(o.code, 0);
  for (const char* verb : {"list", "fmt", "compile", "inspect", "check", "run", "explain", "doctor"})
    EXPECT_TRUE(contains(o.out, std::string("\n  ") + verb + " "));
  EXPECT_TRUE(contains(o.out, "0 done; 1 a check failed; 2 wrong command line"));
  EXPECT_EQ(o.err, "");
}

TEST_F(CommandLine, VersionIsThatOfTheRuntime) { EXPECT_EQ(normc({"--version"}).out, "normc 0.1.0\n"); }

TEST_F(CommandLine, HelpOfAVerbShowsItsFlags) {
  const Outcome o = normc({"run", "--help"});
  EXPECT_EQ(o.code, 0);
  EXPECT_TRUE(contains(o.out, "--in NAME=FILE.npy"));
}

TEST_F(CommandLine, HelpOfRunNamesEveryTensor) {
  const std::string text = normc({"run", "--help"}).out;
  EXPECT_TRUE(contains(text,
                       "An input; may be given several times: x, dy, scale, bias, mask, residual, "
                       "residual_out, gate, mod_scale, mod_shift, dresidual_out, quant_scale, rope_cos, "
                       "rope_sin\n"));
  EXPECT_TRUE(contains(text,
                       "Where to put an output; may be given several times: y, dx, dscale, dbias, "
                       "residual_out, dresidual, dgate, dmod_scale, dmod_shift, codes, quant_scale_out\n"));
}

TEST_F(CommandLine, HelpSaysWhichFlagsMayBeGivenSeveralTimes) {
  EXPECT_TRUE(contains(normc({"run", "--help"}).out, "e.g. epsilon=1e-6; may be given several times\n"));
  EXPECT_TRUE(contains(normc({"compile", "--help"}).out, "leaves open; may be given several times\n"));
}

TEST_F(CommandLine, HelpOfRunSaysWhatItsFilesAre) {
  const std::string text = normc({"run", "--help"}).out;
  EXPECT_TRUE(contains(text,
                       "A forward begins a fresh state where the --state\n"
                       "folder is absent or empty; that of infer and infer_backward holds a state.\n"));
  EXPECT_TRUE(
      contains(text,
               "bf16 is read and written\n"
               "as f4. Codes of e4m3 and scales that are powers of two are written as their bytes, u1.\n"));
}

TEST_F(CommandLine, HelpOfCompileSaysWhatANormFileBesideAProblemIs) {
  EXPECT_TRUE(contains(normc({"compile", "--help"}).out,
                       "With a whole problem, a .norm\nfile only defines the names that the problem uses."));
}

TEST_F(CommandLine, NoVerbIsAnError) {
  const Outcome o = normc({});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err, "normc: error: there is no verb on the command line\n  hint: see normc --help\n");
}

TEST_F(CommandLine, SuggestsTheNearestVerb) {
  const Outcome o = normc({"compil", "layer_norm"});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.out, "");
  EXPECT_EQ(o.err, "normc: error: there is no verb 'compil'\n  hint: did you mean 'compile'?\n");
}

TEST_F(CommandLine, NamesAllVerbsWhereNoneIsNear) {
  EXPECT_TRUE(contains(normc({"frobnicate"}).err, "the verbs are list, fmt, compile"));
}

TEST_F(CommandLine, SuggestsTheNearestFlag) {
  const Outcome o = normc({"compile", "layer_norm", "--featurs", "768"});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err,
            "normc: error: normc compile has no flag '--featurs'\n  hint: did you mean '--features'?\n");
}

TEST_F(CommandLine, SuggestsAFlagThatAllVerbsHave) {
  EXPECT_TRUE(contains(normc({"list", "--jsn"}).err, "did you mean '--json'?"));
}

TEST_F(CommandLine, SaysThatAFlagStandsBeforeItsVerb) {
  EXPECT_EQ(normc({"--features", "64", "compile", "layer_norm"}).err,
            "normc: error: '--features' stands before the verb\n  hint: write it behind: normc compile "
            "--features\n");
  EXPECT_TRUE(contains(normc({"--featurs", "64", "compile", "layer_norm"}).err, "has no flag '--featurs'"));
}

TEST_F(CommandLine, AWordThatIsNoPackageSaysWhatMakesOne) {
  for (const char* verb : {"inspect", "check"})
    EXPECT_EQ(normc({verb, "layer_norm"}).err,
              "normc: error: there is no package 'layer_norm'\n"
              "  hint: normc compile layer_norm -o layer_norm.npk makes one of this norm\n");
  EXPECT_TRUE(contains(normc({"explain", "-", "layer_norm:forward@f32[*x64]"}).err,
                       "a package cannot come from the standard input"));
}

TEST_F(CommandLine, HelpOfTuneNamesNoEntryThatItRefuses) {
  EXPECT_TRUE(contains(normc({"tune", "--help"}).out, "infer [these three]; infer_backward\n"));
  EXPECT_TRUE(contains(normc({"compile", "--help"}).out,
                       "forward, backward, infer [these three]; infer_backward, forward_reduce, "
                       "forward_apply, backward_reduce, backward_apply, commit\n"));
}

TEST_F(CommandLine, HelpOfEveryVerbHasTheFlagForPrograms) {
  for (const char* verb :
       {"list", "fmt", "compile", "inspect", "check", "run", "explain", "tune", "records", "doctor"})
    EXPECT_TRUE(contains(normc({verb, "--help"}).out, "--json ")) << verb;
}

TEST_F(CommandLine, HelpOfFmtSaysWhereAFileStands) {
  const std::string text = normc({"fmt", "--help"}).out;
  EXPECT_TRUE(contains(text, "\n  FILE   "));
  EXPECT_TRUE(contains(text, "-o,--output FILE "));
  EXPECT_EQ(text.find("TEXT"), text.npos);
}

TEST_F(CommandLine, HelpOfRecordsEndsInLinesOfItsWidth) {
  const std::string text = normc({"records", "--help"}).out;
  for (size_t begin = text.find("\nverify ") + 1; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    EXPECT_LE(end - begin, 100u) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST_F(CommandLine, RefusesOneArgumentTooMany) {
  const Outcome o = normc({"inspect", "a.npk", "b.npk"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "normc: error: normc inspect takes no argument 'b.npk'"));
}

TEST_F(CommandLine, RefusesAFlagWithoutItsValue) {
  const Outcome o = normc({"compile", "layer_norm", "-o"});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err, "normc: error: --output needs a value\n");
}

TEST_F(CommandLine, RefusesAFlagThatIsGivenTwice) {
  const Outcome o = normc({"compile", "layer_norm", "-o", "a.npk", "-o", "b.npk"});
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.err, "normc: error: --output is given more than once\n");
}

TEST_F(CommandLine, HelpIsAVerbToo) {
  EXPECT_EQ(normc({"help"}).out, normc({"--help"}).out);
  const Outcome o = normc({"help", "run"});
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.out, normc({"run", "--help"}).out);
}

TEST_F(CommandLine, TheWorkerSaysThatItIsNotForPeople) {
  const std::string normc = NORMC_PROGRAM;
  const Outcome o = program(normc.substr(0, normc.rfind('/')) + "/normc-worker", {"--help"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(
      o.err, "normc-worker takes no arguments: normc tune, normc-bundle and libnormc_tuner start it"));
}

TEST_F(CommandLine, AnUnforeseenErrorEndsInASentence) {
  const auto declare = [](CLI::App&) -> Action {
    return [](Output&) -> ExitCode { throw std::runtime_error("the moon is in the way"); };
  };
  const char* const argv[] = {"normc", "moon"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(2, argv, {{"moon", "", declare}}), ExitCode::Refused);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "normc: error: the moon is in the way\n  hint: normc did not expect this; please report it\n");
}

TEST_F(CommandLine, EveryVerbSaysWhatItNeeds) {
  EXPECT_TRUE(contains(normc({"fmt"}).err, "normc fmt needs a file"));
  EXPECT_TRUE(contains(normc({"compile"}).err, "normc compile needs a norm"));
  EXPECT_TRUE(contains(normc({"inspect"}).err, "normc inspect needs a package"));
  EXPECT_TRUE(contains(normc({"check"}).err, "normc check needs a package"));
  EXPECT_TRUE(contains(normc({"run", "a.npk"}).err, "normc run needs a package and a problem"));
  EXPECT_TRUE(contains(normc({"explain"}).err, "normc explain needs a package and a problem"));
}

TEST_F(CommandLine, WithJsonAnErrorIsOneDocumentBesideItsText) {
  const std::vector<std::vector<std::string>> wrong{{"compile", "layer_nrm", "-o", "a.npk"},
                                                    {"check", "none.npk"},
                                                    {"explain", "none.npk", "layer_norm:forward@f32[*x8]"},
                                                    {"run", "none.npk"},
                                                    {"inspect", "none.npk"},
                                                    {"records", "show", "none.jsonl"},
                                                    {"tune", "layer_norm"},
                                                    {"fmt", "layer_nrm"},
                                                    {"fmt", "none.norm"},
                                                    {"compile", "--featurs", "8"},
                                                    {"compil"},
                                                    {}};
  for (std::vector<std::string> words : wrong) {
    const Outcome text = normc(words);
    EXPECT_EQ(text.out, "");
    words.push_back("--json");
    const Outcome json = normc(words);
    EXPECT_EQ(json.code, text.code);
    EXPECT_EQ(json.err, text.err);
    const auto errors = json.json()["errors"];
    ASSERT_EQ(errors.size(), 1u) << json.out;
    EXPECT_TRUE(contains(json.err, errors[0]["message"]));
    EXPECT_TRUE(errors[0].contains("hint"));
  }
}

TEST_F(CommandLine, WithJsonErrorsOfANormHaveTheirPlaces) {
  write("bad.norm", "norm a {\n  reduce rowss\n}\n");
  const Outcome o = normc({"compile", "bad.norm", "-o", "a.npk", "--json"});
  EXPECT_EQ(o.code, 3);
  EXPECT_EQ(o.json()["errors"][0]["file"], "bad.norm");
  EXPECT_EQ(o.json()["errors"][0]["line"], 2);
}

TEST_F(CommandLine, WithJsonAVerdictStaysTheOneDocument) {
  const Outcome foreign = normc({"compile", "layer_norm:infer@f32[*x8]", "--target", "sm_90", "-o", "g.npk"});
  ASSERT_EQ(foreign.code, 0) << foreign.err;
  const Outcome o = normc({"check", "g.npk", "--json"});
  EXPECT_EQ(o.code, 3);
  EXPECT_EQ(o.json()["not_run"], 1) << "what is said of it stands on the standard error alone";
  EXPECT_TRUE(contains(o.err, "no kernel of g.npk was run here"));
}

TEST_F(CommandLine, VersionMayBeJson) {
  EXPECT_EQ(normc({"--version", "--json"}).json(), (nlohmann::json{{"version", "0.1.0"}}));
  EXPECT_EQ(normc({"--json", "--version"}).json(), (nlohmann::json{{"version", "0.1.0"}}));
}

TEST_F(CommandLine, JsonMayStandBeforeOrAfterTheVerb) {
  EXPECT_EQ(normc({"--json", "list"}).json(), normc({"list", "--json"}).json());
}

TEST_F(CommandLine, AnEmptyValueIsNoDefault) {
  for (const auto& [flag, command] : {std::pair<const char*, std::vector<std::string>>{
                                          "--records", {"compile", "layer_norm", "-o", "l.npk"}},
                                      {"--emit", {"compile", "layer_norm:forward@f32[*x8]", "-o", "l.s"}},
                                      {"--shard", {"tune", "layer_norm", "--features", "8"}},
                                      {"--saved", {"run", "l.npk", "layer_norm:forward@f32[*x8]"}},
                                      {"--output", {"fmt", "layer_norm"}}}) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {flag, ""});
    const Outcome o = normc(words);
    EXPECT_EQ(o.code, 2) << flag << o.out;
    EXPECT_TRUE(contains(o.err, std::string(flag) + " is empty\n  hint: leave it out, or give it a value\n"));
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(CommandLine, HelpForWhatIsNotThereIsAnError) {
  EXPECT_TRUE(contains(normc({"help", "fmtt"}).err, "there is no verb 'fmtt'\n  hint: did you mean 'fmt'?"));
  EXPECT_EQ(normc({"nosuch", "--help"}).code, 2);
  EXPECT_TRUE(contains(normc({"fmt", "--nosuch", "--help"}).err, "normc fmt has no flag '--nosuch'"));
}

}  // namespace
}  // namespace normc::cli
