#include <gtest/gtest.h>

#include <fstream>

#include "bench/cpu/Torch.h"

namespace normc::bench {
namespace {

/// A shell script that answers like the peer does.
std::string script(const std::string& answers) {
  const std::string file =
      testing::TempDir() + "/peer_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ofstream(file) << answers;
  return file;
}

TEST(TorchPeer, SaysThatTheProgramIsMissing) {
  const TorchPeer peer("/nowhere/python", "torch_peer.py");
  EXPECT_TRUE(peer.version().empty());
  EXPECT_EQ(peer.whyMissing(), "could not be started: no program /nowhere/python");
}

TEST(TorchPeer, HandsOnWhyThePeerHasNoTorch) {
  const TorchPeer peer("sh", script(R"(echo '{"error": "cannot be imported: No module named torch"}')"));
  EXPECT_EQ(peer.whyMissing(),
            "cannot be imported: No module named torch (scripts/setup --torch installs it)");
}

TEST(TorchPeer, SurvivesAPeerThatEnds) {
  const TorchPeer peer("sh", script("exit 0"));
  EXPECT_EQ(peer.whyMissing(), "ended unexpectedly (scripts/setup --torch installs it)");
}

TEST(TorchPeer, ReadsTheVersion) {
  const TorchPeer peer("sh", script(R"(read line; echo '{"version": "2.0"}')"));
  EXPECT_EQ(peer.version(), "PyTorch 2.0");
}

}  // namespace
}  // namespace normc::bench
