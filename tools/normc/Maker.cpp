#include "tools/normc/Maker.h"

#include <atomic>
#include <thread>

#include "codegen/targets/Unavailable.h"
#include "runtime/package/ManifestJson.h"
#include "runtime/package/Sha256.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"

namespace normc::cli {

std::string objectOf(const std::string& package) {
  package::Manifest manifest = package::wholeManifest(package::manifestTextOf(package));
  for (package::Kernel& kernel : manifest.kernels) kernel.schedule.clear(), kernel.origin.clear();
  for (package::Blob& blob : manifest.blobs) blob.offset = 0;  // it depends on the length of those
  return runtime::sha256(package::writeManifest(manifest));
}

Maker::Maker(const tune::Landscape& landscape, const std::vector<codegen::TargetPtr>& generators,
             const Problem& problem, const std::string& folder, const Interrupt& interrupt)
    : landscape_(landscape), generators_(generators), problem_(problem), folder_(folder), interrupt_(interrupt) {}

tune::Made Maker::makeOne(size_t point) const {
  const tune::Point& candidate = landscape_[point];
  tune::Made made;
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

std::vector<tune::Made> Maker::make(const std::vector<size_t>& points) const {
  std::vector<tune::Made> made(points.size());
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
