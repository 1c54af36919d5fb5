#include <gtest/gtest.h>

#include "tools/normc/Output.h"

namespace normc::cli {
namespace {

TEST(Table, AlignsWordsLeftAndNumbersRight) {
  Table table({"name", ">count", "note"});
  table.row({"a", "1", "first"});
  table.row({"longer", "1000", ""});
  EXPECT_EQ(table.text(1),
            " name    count  note\n"
            " a           1  first\n"
            " longer   1000\n");
}

TEST(Units, ReadWell) {
  EXPECT_EQ(bytesText(812), "812 B");
  EXPECT_EQ(bytesText(98611), "96.3 KiB");
  EXPECT_EQ(bytesText(3.5 * 1024 * 1024), "3.5 MiB");
  EXPECT_EQ(secondsText(250e-9), "250 ns");
  EXPECT_EQ(secondsText(1.5e-6), "1.50 us");
  EXPECT_EQ(secondsText(0.0123), "12.3 ms");
  EXPECT_EQ(secondsText(3.14), "3.1 s");
  EXPECT_EQ(secondsText(42.4), "42 s");
  EXPECT_EQ(secondsText(130), "2 min 10 s");
  EXPECT_EQ(counted(1, "kernel"), "1 kernel");
  EXPECT_EQ(counted(0, "kernel"), "0 kernels");
  EXPECT_EQ(digitsText(0.000321, 2), "0.00032");
  EXPECT_EQ(digitsText(12345, 3), "12345");
  EXPECT_EQ(digitsText(1.26e-9, 2), "1.3e-09");
}

}  // namespace
}  // namespace normc::cli
