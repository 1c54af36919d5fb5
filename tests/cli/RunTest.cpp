#include <cmath>
#include <cstring>
#include <filesystem>

#include "tests/cli/Command.h"
#include "tools/normc/Npy.h"

namespace normc::cli {
namespace {

namespace fs = std::filesystem;

class Run : public CommandTest {
 protected:
  void array(const std::string& name, std::vector<int64_t> shape, const std::vector<double>& values,
             DType type = DType::F32) const {
    NpyArray a{type, std::move(shape), {}};
    for (const double value : values) {
      if (type == DType::F64) a.data.append(reinterpret_cast<const char*>(&value), 8);
      if (type == DType::U8) a.data += char(value);
      const float narrow = float(value);
      if (type == DType::F32) a.data.append(reinterpret_cast<const char*>(&narrow), 4);
    }
    write(name, npyText(a));
  }
  std::vector<float> floats(const std::string& name) const {
    const auto a = parseNpy(read(name), name);
    EXPECT_TRUE(a) << name;
    if (!a) return {};
    EXPECT_EQ(a->type, DType::F32);
    std::vector<float> values(a->elements());
    std::memcpy(values.data(), a->data.data(), a->data.size());
    return values;
  }
  /// Two rows of two features, and parameters that change nothing.
  void smallInputs() const {
    array("x.npy", {2, 2}, {3, -1, 5, 7});
    array("scale.npy", {2}, {1, 1});
    array("bias.npy", {2}, {0, 0});
    array("dy.npy", {2, 2}, {1, 2, 3, 4});
  }
  const std::vector<std::string> layer_{
      "run",  "l.npk",        "layer_norm:forward@f32[*x2]", "--in", "x=x.npy", "--in", "scale=scale.npy",
      "--in", "bias=bias.npy"};
  std::vector<std::string> layerWith(std::vector<std::string> more) const {
    more.insert(more.begin(), layer_.begin(), layer_.end());
    return more;
  }
};

TEST_F(Run, NormalizesTwoRowsByHand) {
  package("l.npk", {"layer_norm:forward@f32[*x2]"});
  smallInputs();
  const Outcome o = normc(layerWith({"--out", "y=y.npy"}));
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "y: 2x2 f4 in y.npy"));
  // Rows (3, -1) and (5, 7): means 1 and 6, deviations 2 and 1, epsilon 1e-5.
  const float first = 2 / std::sqrt(4 + 1e-5), second = 1 / std::sqrt(1 + 1e-5);
  const std::vector<float> y = floats("y.npy");
  ASSERT_EQ(y.size(), 4u);
  EXPECT_FLOAT_EQ(y[0], first);
  EXPECT_FLOAT_EQ(y[1], -first);
  EXPECT_FLOAT_EQ(y[2], -second);
  EXPECT_FLOAT_EQ(y[3], second);
}

TEST_F(Run, AppliesNumbersOfTheCommandLine) {
  package("l.npk", {"layer_norm:forward@f32[*x2]"});
  smallInputs();
  const Outcome o = normc(layerWith({"--out", "y=y.npy", "--number", "epsilon=5"}));
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_FLOAT_EQ(floats("y.npy")[0], 2.0f / 3.0f);  // sqrt(4 + 5)
}

TEST_F(Run, CarriesStateAndSavedStatisticsThroughTraining) {
  package("p.npk", {"power_norm:forward@f32[*x2]", "power_norm:backward@f32[*x2]",
                    "power_norm:infer@f32[*x2]", "power_norm:infer_backward@f32[*x2]"});
  smallInputs();
  const std::vector<std::string> forward{"run",
                                         "p.npk",
                                         "power_norm:forward@f32[*x2]",
                                         "--in",
                                         "x=x.npy",
                                         "--in",
                                         "scale=scale.npy",
                                         "--in",
                                         "bias=bias.npy",
                                         "--state",
                                         "state",
                                         "--saved",
                                         "saved",
                                         "--out",
                                         "y=y.npy"};
  Outcome o = normc(forward);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.err, "");
  // psi2' = 0.9 * 1 + 0.1 * mean(x^2), with mean(x^2) = 17 and 25.
  EXPECT_FLOAT_EQ(floats("state/psi2.npy")[0], 2.6f);
  EXPECT_FLOAT_EQ(floats("state/psi2.npy")[1], 3.4f);
  EXPECT_TRUE(exists("saved/rstd.npy"));

  o = normc({"run", "p.npk", "power_norm:backward@f32[*x2]", "--in", "x=x.npy", "--in", "dy=dy.npy", "--in",
             "scale=scale.npy", "--state", "state", "--saved", "saved", "--out", "dx=dx.npy", "--out",
             "dbias=db.npy"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(floats("db.npy"), (std::vector<float>{4, 6}));

  const std::string before = read("state/psi2.npy");
  o = normc({"run", "p.npk", "power_norm:infer@f32[*x2]", "--in", "x=x.npy", "--in", "scale=scale.npy",
             "--in", "bias=bias.npy", "--state", "state", "--out", "y=i.npy"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NEAR(floats("i.npy")[0], 3 / std::sqrt(2.6f), 1e-5);
  EXPECT_EQ(read("state/psi2.npy"), before);

  std::vector<std::string> gradient{"run",       "p.npk",   "power_norm:infer_backward@f32[*x2]",
                                    "--in",      "x=x.npy", "--in",
                                    "dy=dy.npy", "--in",    "scale=scale.npy",
                                    "--state",   "state",   "--out",
                                    "dx=g.npy",  "--out",   "dbias=db.npy"};
  o = normc(gradient);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NEAR(floats("g.npy")[0], floats("dy.npy")[0] * floats("scale.npy")[0] / std::sqrt(2.6f), 1e-5);
  EXPECT_EQ(floats("db.npy"), (std::vector<float>{4, 6}));
  EXPECT_EQ(read("state/psi2.npy"), before);
  gradient.insert(gradient.end(), {"--saved", "saved"});
  EXPECT_TRUE(contains(normc(gradient).err, "power_norm:infer_backward@f32[*x2] has no saved statistics"));
}

TEST_F(Run, NamesTheFolderOfSavedStatisticsThatIsNotThere) {
  package("p.npk", {"rms_norm:backward@f32[*x2]"});
  array("x.npy", {1, 2}, {1, 2});
  EXPECT_TRUE(contains(normc({"run", "p.npk", "rms_norm:backward@f32[*x2]", "--in", "x=x.npy", "--in",
                              "dy=x.npy", "--in", "scale=x.npy", "--saved", "nowhere", "--out", "dx=g.npy"})
                           .err,
                       "there is no folder nowhere with the fields of the saved statistics of"));
}

TEST_F(Run, PassesAResidualOn) {
  const std::string forward = "rms_norm_residual:forward@f32[*x2]",
                    backward = "rms_norm_residual:backward@f32[*x2]";
  package("r.npk", {forward, backward});
  smallInputs();
  array("r.npy", {2, 2}, {1, 1, -1, 1});
  Outcome o =
      normc({"run", "r.npk", forward, "--in", "x=x.npy", "--in", "residual=r.npy", "--in", "scale=scale.npy",
             "--saved", "saved", "--out", "y=y.npy", "--out", "residual_out=h.npy"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(floats("h.npy"), (std::vector<float>{4, 0, 4, 8}));
  EXPECT_NEAR(floats("y.npy")[0], 4 / std::sqrt(8.), 1e-4);

  std::vector<std::string> gradient{"run",
                                    "r.npk",
                                    backward,
                                    "--in",
                                    "residual_out=h.npy",
                                    "--in",
                                    "dy=dy.npy",
                                    "--in",
                                    "scale=scale.npy",
                                    "--saved",
                                    "saved",
                                    "--out",
                                    "dx=dx.npy"};
  o = normc(gradient);
  ASSERT_EQ(o.code, 0) << o.err << "dresidual_out may be left out";
  const std::vector<float> dx = floats("dx.npy");
  std::vector<std::string> with = gradient;
  with.insert(with.end(), {"--in", "dresidual_out=dy.npy"});
  o = normc(with);
  ASSERT_EQ(o.code, 0) << o.err;
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(floats("dx.npy")[i], dx[i] + floats("dy.npy")[i], 1e-6);

  gradient.insert(gradient.end(), {"--out", "dresidual=dr.npy"});
  o = normc(gradient);
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, backward + " does not write 'dresidual', because it is equal to 'dx'"));
  EXPECT_TRUE(contains(o.err, "leave out --out dresidual"));
  o = normc({"run", "r.npk", backward, "--in", "dy=dy.npy", "--in", "scale=scale.npy"});
  EXPECT_TRUE(contains(o.err, backward + " needs --in residual_out=FILE.npy"));
}

TEST_F(Run, WritesAVectorForEachSegment) {
  const std::string forward = "adaptive_layer_norm:forward@f32[*x*x2]",
                    backward = "adaptive_layer_norm:backward@f32[*x*x2]";
  package("m.npk", {forward, backward});
  array("x.npy", {2, 1, 2}, {3, -1, 5, 7});
  array("dy.npy", {2, 1, 2}, {1, 2, 3, 4});
  array("zero.npy", {2, 2}, {0, 0, 0, 0});
  Outcome o = normc({"run", "m.npk", forward, "--in", "x=x.npy", "--in", "mod_scale=zero.npy", "--in",
                     "mod_shift=zero.npy", "--saved", "saved", "--out", "y=y.npy"});
  ASSERT_EQ(o.code, 0) << o.err;
  o = normc({"run", "m.npk", backward, "--in", "x=x.npy", "--in", "dy=dy.npy", "--in", "mod_scale=zero.npy",
             "--saved", "saved", "--out", "dmod_shift=dt.npy", "--out", "dmod_scale=ds.npy"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "dmod_shift: 2x2 f4 in dt.npy"));
  EXPECT_EQ(floats("dt.npy"), (std::vector<float>{1, 2, 3, 4})) << "a segment has one row";
  const std::vector<float> y = floats("y.npy");
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(floats("ds.npy")[i], float(i + 1) * y[i], 1e-5);
}

TEST_F(Run, RepeatsTimeCallsAndChangeNothing) {
  package("p.npk", {"power_norm:forward@f32[*x2]"});
  smallInputs();
  const Outcome o =
      normc({"run", "p.npk", "power_norm:forward@f32[*x2]", "--in", "x=x.npy", "--in", "scale=scale.npy",
             "--in", "bias=bias.npy", "--state", "state", "--repeat", "5", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.json()["calls_timed"], 5);
  EXPECT_EQ(o.json()["bytes_moved"], 2 * 16);
  EXPECT_GT(o.json()["seconds"]["median"], 0.0);
  EXPECT_FLOAT_EQ(floats("state/psi2.npy")[0], 2.6f);  // one step, not six
}

TEST_F(Run, ReadsABoolMask) {
  package("b.npk", {"batch_norm:forward@f32[*x2]{mask}"});
  smallInputs();
  array("mask.npy", {2}, {1, 0}, DType::U8);
  const Outcome o =
      normc({"run", "b.npk", "batch_norm:forward@f32[*x2]{mask}", "--in", "x=x.npy", "--in",
             "scale=scale.npy", "--in", "bias=bias.npy", "--in", "mask=mask.npy", "--out", "y=y.npy"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(floats("y.npy"), (std::vector<float>{0, 0, 0, 0}));  // one real row is its own mean
  EXPECT_TRUE(contains(o.err, "normc: note: no --state: the state is a fresh one, and is not kept"));
}

TEST_F(Run, ABackwardThatReadsNoStateSaysNothingOfIt) {
  package("b.npk", {"batch_norm:forward@f32[*x2]", "batch_norm:backward@f32[*x2]"});
  smallInputs();
  const std::vector<std::string> inputs{"--in", "x=x.npy", "--in", "scale=scale.npy", "--saved", "saved"};
  std::vector<std::string> words{"run", "b.npk", "batch_norm:forward@f32[*x2]", "--in", "bias=bias.npy"};
  words.insert(words.end(), inputs.begin(), inputs.end());
  ASSERT_EQ(normc(words).code, 0);
  words = {"run", "b.npk", "batch_norm:backward@f32[*x2]", "--in", "dy=x.npy", "--out", "dx=dx.npy"};
  words.insert(words.end(), inputs.begin(), inputs.end());
  const Outcome o = normc(words);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.err, "");
}

TEST_F(Run, RoundsOtherFloatTypesAndSaysSo) {
  package("l.npk", {"layer_norm:forward@f32[*x2]"});
  smallInputs();
  array("x.npy", {2, 2}, {3, -1, 5, 7}, DType::F64);
  const Outcome o = normc(layerWith({"--out", "y=y.npy"}));
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.err, "normc: note: x.npy holds f8; its values are rounded to f32\n");
  EXPECT_NEAR(floats("y.npy")[1], -1, 1e-5);
}

TEST_F(Run, ReadsAndWritesBf16AsF4) {
  package("l.npk", {"layer_norm:forward@bf16[*x2]", "--target", "host"});
  smallInputs();
  std::vector<std::string> arguments = layerWith({"--out", "y=y.npy"});
  arguments[2] = "layer_norm:forward@bf16[*x2]";
  const Outcome o = normc(arguments);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(floats("y.npy"), (std::vector<float>{1, -1, -1, 1}));
}

TEST_F(Run, AnInterruptKeepsTheResult) {
  package("l.npk", {"layer_norm:forward@f32[*x2]"});
  smallInputs();
  const Outcome o = interrupted(layerWith({"--out", "y=y.npy", "--repeat", "1000000000"}));
  EXPECT_EQ(o.code, 4);
  EXPECT_TRUE(contains(o.out, "interrupted: 0 of 1000000000 calls are timed"));
  EXPECT_EQ(floats("y.npy").size(), 4u);
}

TEST_F(Run, SaysThatOutputsAreNotKept) {
  package("l.npk", {"layer_norm:forward@f32[*x2]"});
  smallInputs();
  const std::string note = "normc: note: no --out: the outputs are computed and not kept\n";
  EXPECT_EQ(normc(layerWith({})).err, note);
  EXPECT_EQ(normc(layerWith({"--repeat", "1"})).err.find(note), std::string::npos) << "its result is a time";
  EXPECT_EQ(normc(layerWith({"--out", "y=y.npy"})).err, "");
}

TEST_F(Run, NamesTheInputThatIsMissing) {
  package("l.npk", {"layer_norm:forward@f32[*x2]"});
  smallInputs();
  const Outcome o = normc({"run", "l.npk", "layer_norm:forward@f32[*x2]", "--in", "x=x.npy"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "layer_norm:forward@f32[*x2] needs --in scale=FILE.npy"));
  EXPECT_TRUE(contains(o.err, "its inputs are x, scale, bias"));
}

TEST_F(Run, AsksForTheFlagOfASecondFile) {
  const Outcome o = normc({"run", "l.npk", "layer_norm:forward@f32[*x2]", "--in", "x=x.npy", "scale=s.npy"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err,
                       "takes no argument 'scale=s.npy'\n  hint: repeat the flag before each file: --in "
                       "scale=s.npy, or --out"));
}

TEST_F(Run, RefusesWrongTensors) {
  package("l.npk", {"layer_norm:forward@f32[*x2]"});
  smallInputs();
  const auto refusal = [&](std::vector<std::string> more) { return normc(layerWith(std::move(more))); };
  EXPECT_TRUE(
      contains(refusal({"--in", "sale=x.npy"}).err, "has no input 'sale'\n  hint: did you mean 'scale'?"));
  EXPECT_TRUE(contains(refusal({"--out", "dx=dx.npy"}).err, "has no output 'dx'"));
  EXPECT_TRUE(contains(refusal({"--in", "x=x.npy"}).err, "--in x is given twice"));
  EXPECT_TRUE(contains(refusal({"--out", "y"}).err, "--out is 'y'; it must have the form y=y.npy"));
  EXPECT_TRUE(
      contains(refusal({"--repeat", "-1"}).err, "--repeat is '-1'; it must be a whole number, 0 or more"));
  EXPECT_TRUE(contains(refusal({"--state", "s"}).err, "layer_norm:forward@f32[*x2] has no state"));
  array("x.npy", {2, 3}, {1, 2, 3, 4, 5, 6});
  Outcome o = refusal({"--out", "y=y.npy"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "x has 3 features; layer_norm:forward@f32[*x2] is for 2"));
  array("x.npy", {2}, {1, 2});
  EXPECT_TRUE(contains(refusal({}).err,
                       "x has the shape 2; layer_norm:forward@f32[*x2] takes at least two dimensions"));
  array("x.npy", {2, 2}, {1, 2, 3, 4}, DType::U8);
  o = refusal({});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "x.npy holds u1; x is f32\n  hint: save it as f4"));
  EXPECT_FALSE(exists("y.npy"));
}

TEST_F(Run, AFileOfAWrongShapeIsTheFaultOfTheFile) {
  package("l.npk", {"layer_norm:forward@f32[*x2]"});
  smallInputs();
  array("scale.npy", {3}, {1, 1, 1});
  Outcome o = normc(layerWith({"--out", "y=y.npy"}));
  EXPECT_EQ(o.code, 3) << o.err;
  EXPECT_EQ(o.err, "normc: error: scale has 3 elements; there are 2 features\n");
  EXPECT_FALSE(exists("y.npy"));
  smallInputs();
  std::vector<std::string> fixed = layerWith({"--out", "y=y.npy"});
  fixed[2] = "layer_norm:forward@f32[4x2]";
  o = normc(fixed);
  EXPECT_EQ(o.code, 3) << o.err;
  EXPECT_EQ(o.err, "normc: error: the call has 2 rows; this plan (layer_norm:forward@f32[4x2]) is for 4\n");
}

TEST_F(Run, AnOutputIsNoFieldThatIsWrittenLater) {
  package("p.npk", {"power_norm:forward@f32[*x2]"});
  smallInputs();
  std::filesystem::create_directory(folder_ + "/s");
  const auto run = [&](const std::string& output, std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "p.npk", "power_norm:forward@f32[*x2]", "--in", "x=x.npy", "--in",
                               "scale=scale.npy", "--in", "bias=bias.npy", "--out", "y=" + output});
    return normc(more);
  };
  Outcome o = run("s/step.npy", {"--state", "s"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "--out y=s/step.npy is the same file as a field of --state s/step.npy"));
  o = run("s/rstd.npy", {"--saved", "./s"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "--out y=s/rstd.npy is the same file as a field of --saved ./s/rstd.npy"));
  EXPECT_FALSE(exists("s/step.npy") || exists("s/rstd.npy"));
  o = run("y.npy", {"--state", "new", "--saved", "./new/"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "--state and --saved are one folder"));
  EXPECT_EQ(run("s/y.npy", {"--state", "new"}).code, 0);
}

TEST_F(Run, SaysWhichOutputCannotBeWrittenBeforeItRuns) {
  package("l.npk", {"layer_norm:forward@f32[*x2]"});
  smallInputs();
  const Outcome o = normc(layerWith({"--out", "y=nowhere/y.npy"}));
  EXPECT_EQ(o.code, 3);
  EXPECT_EQ(o.err, "normc: error: cannot write nowhere/y.npy: No such file or directory\n");
}

TEST_F(Run, RefusesFoldersOfOtherNorms) {
  package("n.npk", {"power_norm:forward@f32[*x2]", "power_norm:backward@f32[*x2]",
                    "batch_norm:infer@f32[*x2]", "power_norm:infer@f32[*x*]"});
  smallInputs();
  const std::vector<std::string> inputs{"--in", "x=x.npy",      "--in", "scale=scale.npy",
                                        "--in", "bias=bias.npy"};
  const auto run = [&](const std::string& problem, std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "n.npk", problem});
    more.insert(more.end(), inputs.begin(), inputs.end());
    return normc(more);
  };
  EXPECT_TRUE(contains(run("power_norm:forward@f32[*x2]", {"--state", "s", "--saved", "s"}).err,
                       "--state and --saved are one folder"));
  ASSERT_EQ(run("power_norm:forward@f32[*x2]", {"--state", "state"}).code, 0);
  EXPECT_TRUE(contains(run("batch_norm:infer@f32[*x2]", {"--state", "state"}).err,
                       "state/nu.npy is no field of the state of batch_norm:infer@f32[*x2]\n"
                       "  hint: it has the fields step, running_mean, running_var"));
  EXPECT_TRUE(
      contains(run("batch_norm:infer@f32[*x2]", {"--state", "none"}).err, "the folder none holds no state"));
  EXPECT_TRUE(contains(run("batch_norm:infer@f32[*x2]", {"--saved", "sv"}).err, "has no saved statistics"));
  array("state/nu.npy", {3}, {0, 0, 0});
  EXPECT_TRUE(
      contains(run("power_norm:infer@f32[*x2]", {"--state", "state"}).err,
               "state/nu.npy is f4 [3]; the field nu of the state of power_norm:infer@f32[*x*] is f4 [2]"));
  std::remove((folder_ + "/state/nu.npy").c_str());
  EXPECT_TRUE(contains(run("power_norm:infer@f32[*x2]", {"--state", "state"}).err,
                       "the folder state lacks the field nu of the state"));
  const Outcome o = normc({"run", "n.npk", "power_norm:backward@f32[*x2]", "--in", "x=x.npy", "--in",
                           "dy=dy.npy", "--in", "scale=scale.npy"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "power_norm:backward@f32[*x2] needs what its forward saved"));
}

TEST_F(Run, ItsReportIsNotWhereAnOutputGoes) {
  package("l.npk", {"layer_norm:forward@f32[*x2]"});
  smallInputs();
  const Outcome o = normc(layerWith({"--out", "y=-"}));
  ASSERT_EQ(o.code, 0) << o.err;
  ASSERT_TRUE(parseNpy(o.out, "y")) << "an array and nothing else";
  EXPECT_TRUE(contains(o.err, "y: 2x2 f4 in -"));
  EXPECT_TRUE(
      contains(normc(layerWith({"--out", "y=-", "--json"})).out, "both write to the standard output"));
  const Outcome two = normc(layerWith({"--out", "y=-", "--out", "dx=/dev/stdout"}));
  EXPECT_EQ(two.code, 2);
  EXPECT_TRUE(contains(two.err,
                       "two outputs go to the standard output\n  hint: name a file for all but one of them"));
}

TEST_F(Run, AStateIsWrittenWholeOrNotAtAll) {
  package("p.npk", {"power_norm:forward@f32[*x2]"});
  smallInputs();
  const std::vector<std::string> forward{"run",
                                         "p.npk",
                                         "power_norm:forward@f32[*x2]",
                                         "--in",
                                         "x=x.npy",
                                         "--in",
                                         "scale=scale.npy",
                                         "--in",
                                         "bias=bias.npy",
                                         "--state",
                                         "state"};
  ASSERT_EQ(normc(forward).code, 0);
  const std::string step = read("state/step.npy");
  // A folder cannot be moved over a file.
  fs::create_directories(folder_ + "/state/psi2.npy.old/full");
  const Outcome o = normc(forward);
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "cannot write state/psi2.npy: "));
  EXPECT_TRUE(contains(o.err, "the fields of its folder are as they were"));
  EXPECT_EQ(read("state/step.npy"), step);
  EXPECT_TRUE(exists("state/nu.npy"));
  fs::remove_all(folder_ + "/state/psi2.npy.old");
  // What a process that was killed has left behind goes once a state is whole again.
  write("state/step.npy.old", "");
  EXPECT_EQ(normc(forward).code, 0);
  EXPECT_NE(read("state/step.npy"), step);
  EXPECT_FALSE(exists("state/step.npy.old"));
}

TEST_F(Run, AFolderThatCannotBeMadeIsFoundBeforeTheCall) {
  package("p.npk", {"power_norm:forward@f32[*x2]"});
  smallInputs();
  write("file", "");
  const Outcome o =
      normc({"run", "p.npk", "power_norm:forward@f32[*x2]", "--in", "x=x.npy", "--in", "scale=scale.npy",
             "--in", "bias=bias.npy", "--state", "file/state", "--out", "y=y.npy"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "cannot make the folder file/state: Not a directory"));
  EXPECT_FALSE(exists("y.npy"));
}

TEST_F(Run, AnInputThatIsIgnoredIsNamed) {
  package("p.npk", {"rms_norm_residual:backward@f32[*x2]", "rms_norm_residual:forward@f32[*x2]"});
  smallInputs();
  const std::vector<std::string> rest{"--in",           "scale=scale.npy", "--in",
                                      "residual=x.npy", "--saved",         "saved"};
  std::vector<std::string> forward{
      "run", "p.npk", "rms_norm_residual:forward@f32[*x2]", "--in", "x=x.npy", "--out", "residual_out=h.npy"},
      backward{"run",
               "p.npk",
               "rms_norm_residual:backward@f32[*x2]",
               "--in",
               "residual_out=h.npy",
               "--in",
               "dy=dy.npy",
               "--out",
               "dx=dx.npy"};
  for (auto* words : {&forward, &backward}) words->insert(words->end(), rest.begin(), rest.end());
  ASSERT_EQ(normc(forward).code, 0);
  const Outcome o = normc(backward);
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.err, "normc: note: rms_norm_residual:backward@f32[*x2] does not read residual\n"));
}

}  // namespace
}  // namespace normc::cli
