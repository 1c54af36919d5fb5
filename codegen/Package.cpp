#include "codegen/Package.h"

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "dsl/Print.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"

namespace normc::codegen {

std::vector<Job> defaultJobs(const Problem& problem, const TargetPtr& target) {
  std::vector<Job> jobs;
  for (Candidate& candidate : target->bind(problem)->defaults())
    jobs.push_back({.problem = problem,
                    .target = target,
                    .schedule = std::move(candidate.schedule),
                    .limits = candidate.limits});
  return jobs;
}

/// True if one of the jobs makes a kernel for all calls of `one` and for any number of features.
static bool hasGeneric(const std::vector<Job>& jobs, const Job& one) {
  Problem any = one.problem;
  any.features.reset();
  return llvm::any_of(jobs, [&](const Job& job) {
    return job.limits == package::Limits() && job.target->name() == one.target->name() &&
           job.problem.text() == any.text();
  });
}

void addFallbacks(std::vector<Job>& jobs) {
  std::vector<Job> all;
  for (const Job& job : jobs) {
    all.push_back(job);
    auto plain = llvm::cantFail(job.target->bind(job.problem, job.schedule))->fallback();
    if (!plain || hasGeneric(jobs, job)) continue;
    all.push_back(job);
    all.back().schedule = std::move(*plain);
    all.back().origin = "fallback";
    all.back().fromRecord = false;
    all.back().selection.clear();
  }
  jobs = std::move(all);
}

void separateCores(std::vector<Job>& jobs) {
  using Kernels = std::vector<std::tuple<llvm::StringRef, std::string, package::Limits>>;
  const auto setOf = [](const Job& job) {
    return std::tuple(job.problem.spec.get(), job.problem.text(), job.target->name());
  };
  // The cores of a problem and set, in the order of the targets.
  std::map<decltype(setOf(jobs[0])), llvm::MapVector<llvm::StringRef, Kernels>> cores;
  for (const Job& job : jobs)
    cores[setOf(job)][job.target->core()].push_back({job.target->generator(), job.schedule, job.limits});
  std::vector<Job> all;
  for (Job& job : jobs) {
    const auto& each = cores.at(setOf(job));
    const auto& [first, kernels] = each.front();
    if (llvm::any_of(each, [&](const auto& other) { return other.second != kernels; }))
      job.core = job.target->core();
    else if (job.target->core() != first)
      continue;
    all.push_back(std::move(job));
  }
  jobs = std::move(all);
}

/// Returns, for each job, the first job that makes the same code; its kernel is also offered for the calls of
/// the others.
static std::vector<size_t> sameCode(const std::vector<Job>& jobs) {
  std::vector<size_t> first(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i)
    for (first[i] = 0; first[i] < i; ++first[i])
      if (const Job& one = jobs[first[i]];
          one.target->name() == jobs[i].target->name() &&
          one.target->generator() == jobs[i].target->generator() && one.schedule == jobs[i].schedule &&
          one.problem.spec == jobs[i].problem.spec && one.problem.text() == jobs[i].problem.text())
        break;
  return first;
}

static llvm::Expected<CompiledKernel> compiled(const Job& job, const std::string& symbol,
                                               const CubinOptions& cubin) {
  auto schedule = job.target->bind(job.problem, job.schedule);
  return schedule ? (*schedule)->compile(symbol, cubin) : schedule.takeError();
}

/// Returns the programs that made the kernels, with versions: of ptxas each release that made a cubin.
static std::map<std::string, std::string> producerOf(llvm::ArrayRef<CompiledKernel> kernels) {
  std::map<std::string, std::string> producer{{"normc", NORMC_VERSION_TEXT}, {"llvm", LLVM_VERSION_STRING}};
  std::set<std::string> releases;
  for (const CompiledKernel& kernel : kernels)
    if (!kernel.assembled.empty()) releases.insert(kernel.assembled);
  if (!releases.empty()) producer["ptxas"] = llvm::join(releases, " and ");
  return producer;
}

llvm::Expected<std::string> buildPackage(const std::vector<Job>& jobs, const PackageOptions& options) {
  std::vector<CompiledKernel> kernels(jobs.size());
  const std::vector<size_t> maker = sameCode(jobs);
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t done = 0;
  llvm::Error failure = llvm::Error::success();
  auto work = [&] {
    for (size_t i; (i = next++) < jobs.size();) {
      if (maker[i] != i) {
        std::lock_guard lock(mutex);
        if (options.progress) options.progress(++done, jobs.size(), jobs[i]);
        continue;
      }
      auto kernel = compiled(jobs[i], "k" + std::to_string(i), options.cubins);
      std::lock_guard lock(mutex);
      if (!kernel) {
        if (failure)
          llvm::consumeError(kernel.takeError());
        else
          failure = kernel.takeError();
        next = jobs.size();
        return;
      }
      kernels[i] = std::move(*kernel);
      if (options.note && !kernels[i].note.empty()) options.note(jobs[i], kernels[i].note);
      if (options.progress) options.progress(++done, jobs.size(), jobs[i]);
    }
  };
  unsigned count = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::min<size_t>(count, jobs.size()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  if (failure) return failure;

  package::Writer writer(producerOf(kernels));
  std::map<llvm::StringRef, size_t> linked;
  for (const Job& job : jobs) {
    const Target& target = *job.target;
    if (target.device() != "cpu" || linked.contains(target.name())) continue;
    std::vector<std::string> objects;
    for (size_t i = 0; i < jobs.size(); ++i)
      if (maker[i] == i && jobs[i].target->name() == target.name()) objects.push_back(kernels[i].object);
    auto shared = target.link(objects);
    if (!shared) return shared.takeError();
    linked[target.name()] = writer.addBlob(std::move(*shared), "elf", target.name().str());
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    const CompiledKernel& made = kernels[maker[i]];
    package::Kernel kernel = made.manifest;
    const Spec& spec = *jobs[i].problem.spec;
    const std::string target = jobs[i].target->name().str();
    kernel.norm = writer.addNorm(spec.name, spec.structuralHash(), print(spec));
    kernel.limits = jobs[i].limits;
    kernel.origin = jobs[i].origin;
    kernel.selection = jobs[i].selection;
    kernel.core = jobs[i].core;
    if (made.ptx.empty()) {
      kernel.blob = linked.at(target);
    } else {
      kernel.blob = writer.addBlob(made.ptx, "ptx", target);
      if (!made.cubin.empty()) kernel.cubin = writer.addBlob(made.cubin, "cubin", target);
    }
    writer.addKernel(std::move(kernel));
  }
  return writer.bytes();
}

}  // namespace normc::codegen
