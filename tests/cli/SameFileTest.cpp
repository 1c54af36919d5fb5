// An output that is a file of the command line is refused in every verb, by whatever path it is named, and
// before anything is written.
#include <filesystem>

#include "tests/cli/Command.h"

namespace normc::cli {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* name;
  std::vector<std::string> command;  // OUT stands for the path of the output
  std::string file;                  // that it is the same as
  std::string what, other;           // words of the message
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

class SameFile : public CommandTest, public testing::WithParamInterface<Case> {
 protected:
  SameFile() {
    write("in.norm", "// mine\nnorm mine {\n  reduce features\n}\n");
    write("a.jsonl", "");
    write("x.npy", "x");
    write("y.npy", "y");
    write("l.npk", "l");
    fs::create_directory(folder_ + "/state");
    write("state/nu.npy", "nu");
    fs::create_directory(folder_ + "/bundle");
    write("bundle/results.jsonl", "");
    write("landscape.svg", "");
  }
  Outcome to(const std::string& path) const {
    std::vector<std::string> command = GetParam().command;
    for (std::string& word : command)
      if (const size_t at = word.find("OUT"); at != word.npos) word.replace(at, 3, path);
    return normc(command);
  }
};

TEST_P(SameFile, IsRefused) {
  const Case& each = GetParam();
  const std::string before = read(each.file);
  fs::create_symlink(each.file, folder_ + "/symlink");
  fs::create_hard_link(folder_ + "/" + each.file, folder_ + "/hardlink");
  const std::vector<std::string> there = files();
  for (const std::string& path :
       {each.file, "./" + each.file, "state/../" + each.file, folder_ + "/" + each.file,
        std::string("symlink"), std::string("hardlink")}) {
    const Outcome o = to(path);
    EXPECT_EQ(o.code, 2) << path << "\n" << o.out;
    EXPECT_EQ(o.out, "");
    const std::string joint = each.what.starts_with("--out") ? "=" : " ";
    EXPECT_TRUE(contains(o.err, "normc: error: " + each.what + joint + path + " is the same file as " +
                                    each.other + ", which it would replace\n  hint: name another file for " +
                                    each.what));
  }
  EXPECT_EQ(files(), there);
  EXPECT_EQ(read(each.file), before);
  EXPECT_TRUE(fs::is_symlink(folder_ + "/symlink"));
}

const std::vector<std::string> kRun{"run", "l.npk", "layer_norm:forward@f32[*x2]"};

std::vector<std::string> running(std::vector<std::string> more) {
  more.insert(more.begin(), kRun.begin(), kRun.end());
  return more;
}

INSTANTIATE_TEST_SUITE_P(
    Verbs, SameFile,
    testing::Values(
        Case{"fmt", {"fmt", "in.norm", "-o", "OUT"}, "in.norm", "-o", "the input in.norm"},
        Case{"compile", {"compile", "./in.norm", "-o", "OUT"}, "in.norm", "-o", "the input ./in.norm"},
        Case{"emit",
             {"compile", "in.norm", "--emit", "asm", "-o", "OUT"},
             "in.norm",
             "-o",
             "the input in.norm"},
        Case{"records",
             {"compile", "layer_norm", "--records", "a.jsonl", "-o", "OUT"},
             "a.jsonl",
             "-o",
             "--records a.jsonl"},
        Case{"tune",
             {"tune", "in.norm", "--features", "8", "--records", "OUT"},
             "in.norm",
             "--records",
             "the input in.norm"},
        Case{"import",
             {"tune", "import", "a.jsonl", "--records", "OUT"},
             "a.jsonl",
             "--records",
             "the input a.jsonl"},
        Case{"import_folder",
             {"tune", "import", "bundle", "--records", "OUT"},
             "bundle/results.jsonl",
             "--records",
             "the input bundle/results.jsonl"},
        Case{"package", running({"--in", "x=x.npy", "--out", "y=OUT"}), "l.npk", "--out y",
             "the package l.npk"},
        Case{"in", running({"--in", "x=x.npy", "--out", "y=OUT"}), "x.npy", "--out y", "--in x=x.npy"},
        Case{"out", running({"--in", "x=x.npy", "--out", "dx=y.npy", "--out", "y=OUT"}), "y.npy", "--out y",
             "--out dx=y.npy"},
        Case{"state", running({"--in", "x=x.npy", "--state", "state", "--out", "y=OUT"}), "state/nu.npy",
             "--out y", "a field of --state state/nu.npy"}),
    [](const auto& info) { return std::string(info.param.name); });

class OwnFile : public CommandTest {};

TEST_F(OwnFile, IsAnotherFileThanThoseOfAState) {
  fs::create_directory(folder_ + "/state");
  write("state/nu.npy", "nu");
  const Outcome o =
      normc({"run", "l.npk", "p:forward@f32[*x2]", "--in", "x=state/nu.npy", "--state", "state"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "a field of --state state/nu.npy is the same file as --in x=state/nu.npy"));
}

TEST_F(OwnFile, MayNotBeThereTwice) {
  const Outcome o =
      normc({"run", "l.npk", "p:forward@f32[*x2]", "--out", "y=new.npy", "--out", "dx=./new.npy"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "--out y=new.npy is the same file as --out dx=./new.npy"));
}

TEST_F(OwnFile, IsNotTheStandardInput) {
  const std::string text = "// mine\nnorm mine {\n  reduce features\n}\n";
  write("in.norm", text);
  const Outcome o = normc({"fmt", "-", "-o", "in.norm"}, folder_ + "/in.norm");
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "-o in.norm is the same file as the input -, which it would replace"));
  EXPECT_EQ(read("in.norm"), text);
}

TEST_F(OwnFile, MayBeADeviceThatIsAnInputToo) {
  EXPECT_EQ(normc({"fmt", "layer_norm", "-o", "/dev/null"}).code, 0);
}

}  // namespace
}  // namespace normc::cli
