#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "autotune/measure/Caches.h"
#include "autotune/measure/Machine.h"

namespace normc::measure {
namespace {

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;

/// A folder like the kernel's, for one processor.
class CacheFolder : public testing::Test {
 protected:
  CacheFolder()
      : folder_(testing::TempDir() + "normc_caches_" + std::to_string(getpid()) + "_" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  ~CacheFolder() override { std::filesystem::remove_all(folder_); }

  void add(const std::string& level, const std::string& type, const std::string& size,
           const std::string& sharedBy = "0-1") {
    const std::string cache = folder_ + "/index" + std::to_string(count_++);
    std::filesystem::create_directories(cache);
    const auto write = [&](const char* name, const std::string& text) {
      if (!text.empty()) std::ofstream(cache + "/" + name) << text << "\n";
    };
    write("level", level), write("type", type), write("size", size), write("shared_cpu_list", sharedBy);
  }

  std::string folder_;
  int count_ = 0;
};

TEST_F(CacheFolder, GivesTheComplexNotTheSocket) {
  add("1", "Data", "48K"), add("1", "Instruction", "32K"), add("2", "Unified", "1024K"),
      add("3", "Unified", "32768K");
  const Caches caches = cachesIn(folder_, {64 * kKiB, 2 * kMiB, 384 * kMiB});
  EXPECT_EQ(caches.first, 48 * kKiB);
  EXPECT_EQ(caches.second, kMiB);
  EXPECT_EQ(caches.last, 32 * kMiB);
}

TEST_F(CacheFolder, IsUsedAsItStandsWhereProcessorsAreOfAnotherMachine) {
  add("1", "Data", "32K", "0-1"), add("2", "Unified", "2M", "0-7"),
      add("3", "Unified", "105M", "0-63,128-191");
  EXPECT_EQ(cachesIn(folder_).last, 105 * kMiB);
}

TEST_F(CacheFolder, LeavesWhatIsMissingToTheLibrary) {
  add("1", "Data", "48K"), add("2", "Unified", "1M");
  EXPECT_EQ(cachesIn(folder_, {1, 2, 16 * kMiB}).last, 16 * kMiB);
  EXPECT_EQ(cachesIn(folder_, {1, 2, 16 * kMiB}).second, kMiB);
  EXPECT_EQ(cachesIn(folder_).last, 0) << "0 is unknown";
  const Caches none = cachesIn(folder_ + "/none", {1, 2, 3});
  EXPECT_EQ(none.first, 1);
  EXPECT_EQ(none.second, 2);
  EXPECT_EQ(none.last, 3);
}

TEST_F(CacheFolder, LeavesNonsenseToTheLibrary) {
  add("1", "Data", "48K"), add("2", "Unified", "1M");
  for (const char* size :
       {"0K", "-4K", "32X", "K", "99999999999999999999G", "512K" /* less than the second level */, ""}) {
    add("3", "Unified", size);
    EXPECT_EQ(cachesIn(folder_, {1, 2, 16 * kMiB}).last, 16 * kMiB) << size;
  }
  add("nonsense", "Unified", "64M");
  EXPECT_EQ(cachesIn(folder_, {1, 2, 16 * kMiB}).last, 16 * kMiB);
}

TEST_F(CacheFolder, CountsNoInstructionCache) {
  add("1", "Data", "32K"), add("1", "Instruction", "64K"), add("2", "Instruction", "8M"),
      add("2", "Data", "512K");
  add("3", "Unified", "8M"), add("4", "Unified", "128M");
  const Caches caches = cachesIn(folder_);
  EXPECT_EQ(caches.first, 32 * kKiB);
  EXPECT_EQ(caches.second, 512 * kKiB);
  EXPECT_EQ(caches.last, 128 * kMiB) << "a fourth level is the last";
}

TEST(ThisMachine, HasTheCachesThatItsKernelDescribes) {
  const Caches described = cachesIn(kCacheFolder);
  if (described.last == 0) GTEST_SKIP() << "this system describes no third-level cache";
  EXPECT_EQ(thisCaches().last, described.last);
  EXPECT_EQ(thisMachine().lastCache, described.last);
  EXPECT_EQ(thisMachine().secondCache, described.second);
}

}  // namespace
}  // namespace normc::measure
