// A host's hint on the use of its outputs reaches the kernel as a number, which the plan returns.
#include <gtest/gtest.h>

#include "codegen/Package.h"
#include "runtime/normc.hpp"
#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

std::string described(const std::string& problemText, int32_t reuse) {
  const Problem problem = problemOf(problemText);
  const std::string bytes = llvm::cantFail(
      codegen::buildPackage(codegen::defaultJobs(problem, llvm::cantFail(codegen::findTarget("host")))));
  host::Context context;
  host::Package package(context, bytes.data(), bytes.size());
  normc_request request{};
  request.output_reuse = reuse;
  return host::Plan(package, problemText, request).describe();
}

TEST(OutputReuse, MovesTheSizeFromWhichOutputsGoPastTheCaches) {
  const std::string problem = "layer_norm:forward@f32[*x64]";
  EXPECT_NE(described(problem, NORMC_OUTPUT_REUSE_LATE).find("number: stream_bytes = 0 (default 33554432)"),
            std::string::npos)
      << described(problem, NORMC_OUTPUT_REUSE_LATE);
  EXPECT_NE(described(problem, NORMC_OUTPUT_REUSE_SOON)
                .find("number: stream_bytes = 4611686018427387904 (default 33554432)"),
            std::string::npos)
      << described(problem, NORMC_OUTPUT_REUSE_SOON);
  EXPECT_NE(described(problem, NORMC_OUTPUT_REUSE_UNKNOWN).find("number: stream_bytes = 33554432\n"),
            std::string::npos)
      << described(problem, NORMC_OUTPUT_REUSE_UNKNOWN);
}

}  // namespace
}  // namespace normc
