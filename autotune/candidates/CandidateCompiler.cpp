#include "autotune/candidates/CandidateCompiler.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "autotune/tune/Object.h"
#include "codegen/targets/Unavailable.h"

namespace normc::tune {

/// Writes a file. Returns why it could not; empty if it did.
static std::string written(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), std::streamsize(bytes.size())).flush();
  return file ? "" : "cannot write " + path + ": " + std::strerror(errno);
}

CandidateCompiler::CandidateCompiler(const Landscape& landscape,
                                     const std::vector<codegen::TargetPtr>& generators,
                                     const Problem& problem, const std::string& folder,
                                     std::function<bool()> stop)
    : landscape_(landscape),
      generators_(generators),
      problem_(problem),
      folder_(folder),
      stop_(std::move(stop)) {}

BuiltCandidate CandidateCompiler::compile(size_t point) const {
  const Point& candidate = landscape_[point];
  BuiltCandidate made;
  for (const codegen::TargetPtr& target : generators_) {
    if (target->generator() != candidate.generator) continue;
    auto bytes =
        codegen::buildPackage({{.problem = problem_,
                                .target = target,
                                .schedule = candidate.schedule,
                                .origin = point == landscape_.byDefault() ? "default" : "candidate"}},
                              {.threads = 1});
    if (!bytes) {
      made.unavailable = bytes.errorIsA<codegen::Unavailable>();
      made.failure = llvm::toString(bytes.takeError());
      return made;
    }
    const std::string path = folder_ + "/" + std::to_string(point) + ".npk";
    made.failure = written(path, *bytes);
    made.unavailable = !made.failure.empty();
    if (made.failure.empty()) {
      made.package = path;
      made.object = objectOf(*bytes);
    }
    return made;
  }
  made.failure = "the generator '" + candidate.generator + "' is not part of this normc";
  return made;
}

std::vector<BuiltCandidate> CandidateCompiler::compile(const std::vector<size_t>& points) const {
  std::vector<BuiltCandidate> made(points.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i; (i = next++) < points.size();) {
      if (i > 0 && stop_()) {
        made[i].failure = "it was interrupted before it was compiled";
        made[i].unavailable = true;
        continue;
      }
      made[i] = compile(points[i]);
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(std::thread::hardware_concurrency(), points.size()); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return made;
}

}  // namespace normc::tune
