// Reading a text of many errors costs work in proportion to its bytes, up to the largest of rule C27.
//
// Work is counted in bytes that are allocated: a comparison of all names with all others, or an error that
// keeps more than its line, grows faster than the text.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>

#include "dsl/Nearest.h"
#include "dsl/Norms.h"
#include "tests/dsl/SpecText.h"

namespace {
thread_local uint64_t allocatedBytes = 0;
}  // namespace

void* operator new(size_t bytes) {
  allocatedBytes += bytes;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace normc {
namespace {

std::string number(size_t i) {
  const std::string digits = std::to_string(i);
  return std::string(6 - digits.size(), '0') + digits;
}

struct Kind {
  const char* name;
  std::string begin;
  std::function<std::string(size_t)> unit;  // the text is as many of these as fit
  std::string end;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  const auto add = [&](const char* name, std::string begin, std::function<std::string(size_t)> unit,
                       std::string end = "") {
    all.push_back({name, std::move(begin), std::move(unit), std::move(end)});
  };
  const auto same = [](std::string text) { return [text](size_t) { return text; }; };
  // In lists a line ends after each 100 items.
  const auto items = [](std::string text) {
    return [text](size_t i) { return text + (i % 100 == 99 ? ",\n" : ","); };
  };
  add("unknown bases, short", "", [](size_t i) { return "norm a" + number(i) + " from b {}\n"; });
  add("unknown bases, long", "", [](size_t i) {
    return "norm " + std::string(50, 'a') + number(i) + " from " + std::string(40, 'a') + "bbbbbbbbbb" +
           number(i) + " {}\n";
  });
  add("one base of many names", "", same("norm a from b {}\n"));
  add("bases that are not read yet", "",
      [](size_t i) { return "norm a" + number(i) + " from a" + number(i + 1) + " {}\n"; });
  add("one name", "", same("norm a {\nreduce rows\n}\n"));
  add("no reduce", "", [](size_t i) { return "norm a" + number(i) + " {}\n"; });
  add("legal norms", "", [](size_t i) { return "norm a" + number(i) + " {\nreduce rows\n}\n"; });
  add("legal bases", "", [](size_t i) { return "norm a" + number(i) + " from layer_norm {}\n"; });
  add("unknown clauses", "norm a {\n", same("a\n"), "}\n");
  add("a clause many times", "norm a {\n", same("gate\n"), "}\n");
  add("unknown options", "norm a {\nrunning ", items("a"), "a\n}\n");
  add("options without names", "norm a {\nrunning ", items("1"), "1\n}\n");
  add("options of a value", "norm a {\ngate silu(", items("a"), "a)\n}\n");
  add("unknown values", "norm a {\naffine ", items("a"), "a\n}\n");
  add("strange bytes", "norm a {\n", [](size_t i) { return i % 100 == 99 ? "#\n" : "# "; }, "}\n");
  add("signs", "norm a {\n", [](size_t i) { return i % 100 == 99 ? "+\n" : "a- "; }, "}\n");
  add("broken numbers", "norm a {\n", [](size_t i) { return i % 100 == 99 ? "1x\n" : "1x "; }, "}\n");
  add("norms without a name", "", same("norm\n"));
  return all;
}

std::string textOf(const Kind& kind, size_t bytes) {
  std::string text = kind.begin;
  for (size_t i = 0;; ++i) {
    const std::string unit = kind.unit(i);
    if (text.size() + unit.size() + kind.end.size() > bytes) return text + kind.end;
    text += unit;
  }
}

uint64_t workOf(const std::string& text) {
  const uint64_t before = allocatedBytes;
  const auto specs = readNorms(text, "t.norm");
  return allocatedBytes - before;
}

TEST(LargeText, WorkGrowsNoFasterThanTheText) {
  for (const Kind& kind : kinds()) {
    const std::string large = textOf(kind, kLargestNormText), small = textOf(kind, kLargestNormText / 8);
    EXPECT_LE(workOf(large), 12 * workOf(small)) << kind.name;
  }
}

TEST(LargeText, ShowsTheFirstErrorsAndCountsTheOthers) {
  for (const Kind& kind : kinds()) {
    const auto specs = readNorms(textOf(kind, kLargestNormText), "t.norm");
    if (specs || specs.errors().size() < 2) continue;
    EXPECT_EQ(specs.errors().size(), 101u) << kind.name;
    EXPECT_TRUE(specs.errors().back().message.ends_with(" more errors")) << kind.name;
  }
  // Errors of the lexer, which are found first, are the last ones of this file.
  const std::string strange =
      "norm b {\n" + textOf({"", "", [](size_t) { return "#\n"; }, ""}, 100000) + "}\n";
  const Texts errors = brief("norm a {\n  reduce rowz\n}\n" + strange);
  EXPECT_EQ(errors[0], "expected rows, features, segment or segment_features, found 'rowz' []");
  EXPECT_EQ(errors.back(), "there are 49901 more errors []");
}

TEST(LargeText, SuggestsForTheFirstBases) {
  std::string text = "norm power_norms {\nreduce rows\n}\n";
  for (size_t i = 0; i < 50; ++i) text += "norm a" + number(i) + " from power_nrms {}\n";
  const auto specs = readNorms(text, "t.norm");
  ASSERT_EQ(specs.errors().size(), 50u);
  for (size_t i = 0; i < 50; ++i)
    EXPECT_EQ(specs.errors()[i].hint,
              i < 20 ? "did you mean 'power_norms'?" : "a base is a norm of this file or a built-in one");
}

TEST(LargeText, ThatIsNoneIsOneError) {  // C27
  std::string bytes =
      "\x7f"
      "ELF";
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i % 3 ? i * 37 : 0);
  const Texts errors = brief(bytes);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_TRUE(errors[0].ends_with(" of the 1004 bytes are control characters, so the file is no text [C27]"))
      << errors[0];
  EXPECT_EQ(brief(std::string("n\0o\0r\0m\0 \0", 10)).size(), 6u) << "a few are shown each";
}

}  // namespace
}  // namespace normc
