// The rules of docs/design.md: section 2, which folder may include which, and section 10, which part may know
// what. A new arrow is a decision and is added to the table below.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "tests/structure/Sources.h"

namespace normc {
namespace {

using Names = std::vector<std::string>;

/// The files and folders that the files of a folder may include. The entry with the longest matching folder
/// counts.
struct Arrow {
  std::string folder;
  Names project;      ///< folders or files of this project
  Names packages;     ///< of others: the part of an include before its first slash
  Names hidden = {};  ///< folders within those of `project` that it may not see
};

const std::vector<Arrow> kArrows{
    // Numbers, types and texts that two folders have to agree on.
    {"runtime/abi", {"runtime/abi", "runtime/dlpack_abi.h"}, {}},
    {"runtime", {"runtime"}, {"nlohmann"}},
    // Also what a copy is measured with.
    {"runtime/threads", {"runtime/threads", "runtime/normc.h"}, {}},
    // Operators of hosts know what any host knows.
    {"runtime/hosts",
     {"runtime/hosts", "runtime/normc.h", "runtime/normc.hpp"},
     {"nlohmann", "torch", "xla", "tvm"}},
    {"dsl", {"dsl", "runtime/abi"}, {"nlohmann"}},
    {"codegen", {"codegen", "dsl", "runtime/abi"}, {"lld", "llvm", "mlir"}, {"codegen/emulator"}},
    // Another program with another LLVM: requests are all that it shares with the compiler.
    {"codegen/targets/halide/generator", {"codegen/targets/halide/generator", "runtime/abi"}, {"nlohmann"}},
    // Writing a package needs no LLVM, so that a machine without it can.
    {"codegen/package",
     {"codegen/package", "dsl", "runtime/abi", "runtime/package/ManifestJson.h", "runtime/package/Sha256.h"},
     {}},
    {"autotune", {"autotune", "codegen", "dsl", "runtime"}, {"nlohmann"}},
    // Nor does judging a kernel.
    {"autotune/gate", {"autotune/gate", "codegen/package/Writer.h", "dsl", "runtime"}, {}},
    // Checking a package: on the emulator, a kernel is compiled again.
    {"autotune/check", {"autotune/check", "autotune/gate", "codegen", "dsl", "runtime"}, {"llvm"}},
    // Nor does measuring one, nor deciding by what was measured; a search knows neither files nor processes.
    {"autotune/measure", {"autotune/measure", "autotune/gate", "dsl", "runtime"}, {}},
    {"autotune/records",
     {"autotune/records", "autotune/measure/Stats.h", "dsl", "runtime/abi", "runtime/package/Sha256.h"},
     {"nlohmann"}},
    {"autotune/search",
     {"autotune/search", "autotune/measure/Stats.h", "autotune/records", "runtime/abi"},
     {}},
    {"autotune/worker",
     {"autotune/worker", "autotune/measure", "autotune/gate", "autotune/records", "dsl", "runtime"},
     {"nlohmann"}},
    {"autotune/tune",
     {"autotune/tune", "autotune/worker", "autotune/search", "autotune/records", "autotune/measure",
      "autotune/gate", "dsl", "runtime"},
     {"nlohmann"}},
    // Tuning for hosts: a C boundary, and what the bundle does.
    {"autotune/tuner", {"autotune/tuner", "autotune/tune", "autotune/measure", "dsl", "runtime"}, {"normc"}},
    // Tuning with the compiler: the set of schedules, compiling them, choosing by records.
    {"autotune/candidates",
     {"autotune/candidates", "autotune/tune", "autotune/search", "autotune/records", "autotune/measure",
      "codegen", "dsl", "runtime"},
     {"llvm", "nlohmann"},
     {"codegen/emulator"}},
    {"codegen/emulator", {"codegen/emulator", "runtime/abi"}, {"llvm", "boost"}},
    // Programs: flags, one call of a library, and printing.
    {"tools", {"tools", "autotune", "codegen", "dsl", "runtime"}, {"llvm", "nlohmann", "CLI"}},
    {"tools/plot", {"tools/plot"}, {"llvm"}},
    // Examples are hosts: they know what is installed.
    {"examples", {}, {"normc"}},
    {"tests/install/outside", {}, {"normc"}},
    {"bench",
     {"bench", "tools/plot", "autotune", "codegen", "dsl", "runtime"},
     {"llvm", "nlohmann", "CLI", "oneapi"}},
    // The kit of both benchmarks, and measuring on a GPU, need no compiler: they run where there is only the
    // driver.
    {"bench/kit", {"bench/kit", "autotune/measure", "autotune/gate", "dsl", "runtime"}, {"nlohmann"}},
    {"bench/gpu",
     {"bench/gpu", "bench/kit", "autotune/tune", "autotune/records", "autotune/measure", "autotune/gate",
      "dsl", "runtime"},
     {"nlohmann", "CLI"}},
    {"tests",
     {"tests", "bench", "tools", "autotune", "codegen", "dsl", "runtime", "examples"},
     {"llvm", "mlir", "nlohmann", "openssl", "gtest", "gmock", "CLI"}},
};

bool under(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

const Arrow* arrowOf(const std::string& path) {
  const Arrow* best = nullptr;
  for (const Arrow& arrow : kArrows)
    if (under(path, arrow.folder) && (!best || arrow.folder.size() > best->folder.size())) best = &arrow;
  return best;
}

/// Why `path` may not include this; empty where it may.
std::string reasonAgainst(const std::string& path, const Include& include) {
  const Arrow& arrow = *arrowOf(path);
  const std::string name = include.name, head = name.substr(0, name.find('/'));
  auto allows = [&](const Names& names) {
    return std::ranges::any_of(names, [&](const std::string& n) { return under(name, n); });
  };
  if (name.find("..") != std::string::npos) return "an include is written from the root, without ..";
  bool project = std::ranges::any_of(kArrows, [&](const Arrow& a) { return under(name, a.folder); });
  if (project && !include.angled) {
    for (const std::string& hidden : arrow.hidden)
      if (under(name, hidden)) return arrow.folder + " may not see " + hidden;
    return allows(arrow.project) ? "" : arrow.folder + " may not see " + head;
  }
  if (name.find('/') == std::string::npos) {
    // The standard library, the system's headers; or, in quotes, a file in the same folder or a generated
    // one.
    if (!include.angled) return "";
    bool system = name.ends_with(".h");
    return system && arrow.folder == "dsl" ? "dsl is standard C++ only" : "";
  }
  if (head == "sys" || head == "linux") return arrow.folder == "dsl" ? "dsl is standard C++ only" : "";
  return allows(arrow.packages) ? "" : arrow.folder + " may not need " + head;
}

TEST(Arrows, PointOnlyWhereTheDesignSays) {
  int includes = 0;
  for (const char* folder : {"dsl", "codegen", "autotune", "tools", "runtime", "examples", "bench", "tests"})
    for (const Source& source : sourcesUnder(folder))
      for (const Include& include : includesOf(source.text)) {
        ++includes;
        EXPECT_EQ(reasonAgainst(source.path, include), "") << source.path << " includes " << include.name;
      }
  EXPECT_GT(includes, 500);
}

TEST(Arrows, AreRefusedWhereTheyPointBack) {
  EXPECT_EQ(reasonAgainst("dsl/Spec.cpp", {"codegen/Pipelines.h", false}), "dsl may not see codegen");
  EXPECT_EQ(reasonAgainst("runtime/plan/Plan.cpp", {"dsl/Spec.h", false}), "runtime may not see dsl");
  EXPECT_EQ(reasonAgainst("runtime/plan/Plan.cpp", {"llvm/ADT/StringRef.h", false}),
            "runtime may not need llvm");
  EXPECT_EQ(reasonAgainst("runtime/threads/Pool.cpp", {"runtime/plan/Plan.h", false}),
            "runtime/threads may not see runtime");
  EXPECT_EQ(reasonAgainst("runtime/abi/kernel.h", {"runtime/normc.h", false}),
            "runtime/abi may not see runtime");
  EXPECT_EQ(reasonAgainst("runtime/abi/Types.h", {"dsl/Problem.h", false}), "runtime/abi may not see dsl");
  EXPECT_EQ(reasonAgainst("codegen/Manifest.cpp", {"runtime/normc.h", false}), "codegen may not see runtime");
  EXPECT_EQ(reasonAgainst("codegen/Manifest.cpp", {"runtime/abi/kernel.h", false}), "");
  EXPECT_EQ(reasonAgainst("codegen/targets/halide/generator/Finish.cpp", {"llvm/ADT/StringRef.h", false}),
            "codegen/targets/halide/generator may not need llvm");
  EXPECT_EQ(reasonAgainst("codegen/targets/halide/generator/Finish.cpp", {"codegen/plan/Planner.h", false}),
            "codegen/targets/halide/generator may not see codegen");
  EXPECT_EQ(reasonAgainst("codegen/package/Writer.cpp", {"llvm/ADT/StringRef.h", false}),
            "codegen/package may not need llvm");
  EXPECT_EQ(reasonAgainst("autotune/gate/Gate.cpp", {"codegen/Package.h", false}),
            "autotune/gate may not see codegen");
  EXPECT_EQ(reasonAgainst("bench/cpu/main.cpp", {"tests/dsl/SpecText.h", false}), "bench may not see tests");
  EXPECT_EQ(reasonAgainst("bench/gpu/Bench.cpp", {"codegen/Package.h", false}),
            "bench/gpu may not see codegen");
  EXPECT_EQ(reasonAgainst("bench/gpu/Bench.cpp", {"bench/cpu/Heat.h", false}), "bench/gpu may not see bench");
  EXPECT_EQ(reasonAgainst("codegen/Manifest.cpp", {"bench/cpu/Heat.h", false}), "codegen may not see bench");
  EXPECT_EQ(reasonAgainst("codegen/Manifest.cpp", {"codegen/emulator/Emulator.h", false}),
            "codegen may not see codegen/emulator");
  EXPECT_EQ(reasonAgainst("autotune/tune/Choose.cpp", {"tools/normc/Files.h", false}),
            "autotune/tune may not see tools");
  EXPECT_EQ(reasonAgainst("dsl/Spec.cpp", {"unistd.h", true}), "dsl is standard C++ only");
  EXPECT_EQ(reasonAgainst("dsl/Spec.cpp", {"../codegen/Manifest.h", false}),
            "an include is written from the root, without ..");
}

TEST(Arrows, EveryFolderOfSourcesHasItsPlace) {
  for (const auto& entry : std::filesystem::directory_iterator(NORMC_SOURCE_DIR)) {
    std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name.starts_with(".") || name.starts_with("build")) continue;
    if (sourcesUnder(name).empty()) continue;
    EXPECT_TRUE(arrowOf(name)) << name << " has sources, but no line in the table of this test";
  }
}

TEST(Arrows, RuntimeLinksNeitherTheCompilerNorTheLanguage) {
  std::string text = std::regex_replace(readSource("runtime/CMakeLists.txt"), std::regex("#[^\n]*"), "");
  for (const char* library :
       {"LLVM", "MLIR", "normc_mlir", "normc_codegen", "normc_dsl", "normc::codegen", "normc::dsl"})
    EXPECT_EQ(linesWith(text, library), Names{}) << library;
  EXPECT_FALSE(linesWith(text, "normc_runtime").empty());
}

TEST(Knowledge, OnlyTheLanguageNamesANormalization) {
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(NORMC_SOURCE_DIR) + "/dsl/specs"))
    names.push_back(entry.path().stem().string());
  ASSERT_GT(names.size(), 10u);
  for (const char* folder : {"codegen", "autotune", "tools", "runtime"})
    for (const Source& source : sourcesUnder(folder)) {
      if (source.path == "tools/normc/SelfTest.cpp") continue;  // has to compile one of them
      std::string code = withoutComments(source.text);
      for (const std::string& name : names)
        for (const std::string& line : linesWith(code, name))
          // Examples in messages are text for people.
          EXPECT_NE(line.find("e.g."), std::string::npos) << source.path << " names " << name << ":" << line;
    }
}

TEST(Knowledge, OneFileAtMostKnowsTheGpuDialect) {
  Names files;
  for (const Source& source : sourcesUnder("codegen"))
    for (const Include& include : includesOf(source.text))
      if (include.name.ends_with("/NVVMDialect.h")) files.push_back(source.path);
  EXPECT_LE(files.size(), 1u) << testing::PrintToString(files);
}

TEST(Sources, IncludesAreRead) {
  auto includes =
      includesOf("#include <vector>\n  # include \"dsl/Spec.h\"\n// #include <map>\ninclude \"a/B.td\"\n");
  ASSERT_EQ(includes.size(), 3u);
  EXPECT_EQ(includes[0].name, "vector");
  EXPECT_TRUE(includes[0].angled);
  EXPECT_EQ(includes[1].name, "dsl/Spec.h");
  EXPECT_EQ(includes[2].name, "a/B.td");
}

TEST(Sources, CommentsAreBlankAndStringsStay) {
  EXPECT_EQ(withoutComments("a // b\n/* c\n */ d \"// e\" '\"' 1'000 // f"),
            "a     \n    \n    d \"// e\" '\"' 1'000     ");
}

TEST(Sources, WordsAreWhole) {
  std::string text = "import_power_norm();\nf(\"power_norm:forward\");\n";
  EXPECT_EQ(linesWith(text, "power_norm"), Names{"f(\"power_norm:forward\");"});
}

}  // namespace
}  // namespace normc
