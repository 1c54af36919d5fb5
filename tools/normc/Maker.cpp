#include "tools/normc/Maker.h"

#include <atomic>
#include <cstring>
#include <thread>

#include "codegen/targets/Unavailable.h"
#include "runtime/package/Sha256.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"
#include "tools/normc/Output.h"

namespace normc::cli {

std::string objectOf(const std::string& package) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, package.data() + 16, sizeof bytes);
  Json manifest = Json::parse(package.substr(64, bytes));
  std::string text;
  for (Json& kernel : manifest.at("kernels")) {
    kernel.erase("schedule"), kernel.erase("origin");
    text += kernel.dump();
  }
  for (const Json& blob : manifest.at("blobs")) text += blob.at("sha256").get<std::string>();
  return runtime::sha256(text.data(), text.size());
}

Maker::Maker(const tune::Landscape& landscape, const std::vector<codegen::TargetPtr>& generators,
             const Problem& problem, const std::string& folder, const Interrupt& interrupt)
    : landscape_(landscape), generators_(generators), problem_(problem), folder_(folder), interrupt_(interrupt) {}

tune::BuiltCandidate Maker::makeOne(size_t point) const {
  const tune::Point& candidate = landscape_[point];
  tune::BuiltCandidate made;
  for (const codegen::TargetPtr& target : generators_) {
    if (target->generator() != candidate.generator) continue;
    auto bytes = codegen::buildPackage(
        {{.problem = problem_, .target = target, .schedule = candidate.schedule}}, {.threads = 1});
    if (!bytes) {
      made.unavailable = bytes.errorIsA<codegen::Unavailable>();
      made.failure = llvm::toString(bytes.takeError());
      return made;
    }
    made.package = folder_ + "/" + std::to_string(point) + ".npk";
    made.object = objectOf(*bytes);
    writeFile(made.package, *bytes);
    return made;
  }
  made.failure = "the generator `" + candidate.generator + "` is not part of this normc";
  return made;
}

std::vector<tune::BuiltCandidate> Maker::make(const std::vector<size_t>& points) const {
  std::vector<tune::BuiltCandidate> made(points.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i; (i = next++) < points.size();) {
      if (i > 0 && interrupt_.requested()) {
        made[i].failure = "it was interrupted before it was compiled", made[i].unavailable = true;
        continue;
      }
      try {
        made[i] = makeOne(points[i]);
      } catch (const Failure& failure) {
        made[i].failure = failure.what(), made[i].unavailable = true;  // it could not be written
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(std::thread::hardware_concurrency(), points.size()); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return made;
}

}  // namespace normc::cli
