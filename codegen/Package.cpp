#include "codegen/Package.h"

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "codegen/targets/cpu/Object.h"
#include "dsl/Print.h"
#include "llvm/Config/llvm-config.h"

namespace normc::codegen {

/// X bytes up to which the resident form of a column norm was measured to be faster.
static constexpr int64_t kResidentBytes = 4 << 20;

std::vector<Job> defaultJobs(const Problem& problem, const cpu::Isa& isa) {
  std::vector<Job> jobs;
  for (Strategy strategy : legalStrategies(problem))
    jobs.push_back({problem, isa, cpu::defaultSchedule(problem, isa, strategy), std::nullopt});
  if (jobs.size() < 2) return jobs;
  // Whole columns at a time read memory in narrow strips: worth it while the tensor stays in cache.
  int64_t row = problem.features.value_or(1024) * bytes(problem.data);
  jobs[1].rowsMax = std::max<int64_t>(1, kResidentBytes / row);
  return jobs;
}

llvm::Expected<std::string> buildPackage(const std::vector<Job>& jobs, const PackageOptions& options) {
  std::vector<CompiledKernel> kernels(jobs.size());
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t done = 0;
  std::string failure;
  auto work = [&] {
    for (size_t i; (i = next++) < jobs.size();) {
      auto kernel = compileKernel(jobs[i].problem, jobs[i].schedule, jobs[i].isa, "k" + std::to_string(i));
      std::lock_guard lock(mutex);
      if (!kernel) {
        std::string message = llvm::toString(kernel.takeError());
        if (failure.empty()) failure = message;
        next = jobs.size();
        return;
      }
      kernels[i] = std::move(*kernel);
      if (options.progress) options.progress(++done, jobs.size(), jobs[i]);
    }
  };
  unsigned count = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::min<size_t>(count, jobs.size()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  if (!failure.empty()) return llvm::createStringError(failure);

  package::Writer writer({{"normc", "0.1.0"}, {"llvm", LLVM_VERSION_STRING}});
  std::map<llvm::StringRef, size_t> blobs;
  for (const cpu::Isa& isa : cpu::instructionSets()) {
    std::vector<std::string> objects;
    for (size_t i = 0; i < jobs.size(); ++i)
      if (jobs[i].isa.name == isa.name) objects.push_back(kernels[i].object);
    if (objects.empty()) continue;
    auto shared = cpu::linkShared(objects, isa);
    if (!shared) return shared.takeError();
    blobs[isa.name] = writer.addBlob(std::move(*shared), "elf", isa.name.str());
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    package::Kernel& kernel = kernels[i].manifest;
    const Spec& spec = *jobs[i].problem.spec;
    kernel.norm = writer.addNorm(spec.name, spec.structuralHash(), print(spec));
    kernel.blob = blobs.at(jobs[i].isa.name);
    kernel.rowsMax = jobs[i].rowsMax;
    writer.addKernel(kernel);
  }
  return writer.bytes();
}

}  // namespace normc::codegen
