// Not a test, but a count: every default kernel of some norms on one architecture, how long it takes to
// become PTX and a cubin, and which of its entries spill.
//
//   normc_cuda_census [--arch sm_90] [--norms layer_norm,rms_norm] [--features 1024,1001,0] [--entries FILE]
//   [--cubins no]
//
// 0 features: for any number. Spilling entries are lines of their own; medians come last. FILE gets each
// entry's registers and machine instructions, so that two builds can be compared; without cubins only the
// time to PTX is taken.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "codegen/Target.h"
#include "codegen/targets/cuda/Ptxas.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ELFObjectFile.h"
#include "tests/codegen/Support.h"
#include "tests/codegen/Times.h"

using namespace normc;
using namespace normc::codegen;

namespace {

constexpr uint64_t kInstructionBytes = 16;

/// Machine instructions of each entry: all that its section holds, padding at its end included.
std::map<std::string, uint64_t> instructionsOf(llvm::StringRef cubin) {
  std::map<std::string, uint64_t> result;
  const auto elf = llvm::cantFail(llvm::object::ELF64LEFile::create(cubin));
  for (const auto& section : llvm::cantFail(elf.sections()))
    if (llvm::StringRef name = llvm::cantFail(elf.getSectionName(section)); name.consume_front(".text."))
      result[name.str()] = section.sh_size / kInstructionBytes;
  return result;
}

struct Census {
  bool cubins = true;
  std::FILE* list = nullptr;
  std::vector<Time> ptx, cubin;
  size_t entries = 0, spilling = 0;

  void count(const Problem& problem, const cuda::Schedule& schedule, const cuda::Arch& arch) {
    Time begin = Time::now();
    const CompiledKernel kernel =
        llvm::cantFail(compileKernel(problem, schedule, arch, "k", {.make = false}));
    ptx.push_back(Time::now().since(begin));
    if (!cubins) return;
    begin = Time::now();
    auto assembled = cuda::assemble(kernel.ptx, arch);
    if (!assembled) {
      std::printf("%s: %s\n", problem.text().c_str(), llvm::toString(assembled.takeError()).c_str());
      return;
    }
    cubin.push_back(Time::now().since(begin));
    auto instructions = instructionsOf(assembled->cubin);
    for (const auto& [entry, r] : assembled->resources) {
      ++entries;
      if (list)
        std::fprintf(list, "%s %s %s %s: %lld registers, %llu instructions\n", arch.name.c_str(),
                     problem.text().c_str(), schedule.text().c_str(), entry.c_str(), (long long)r.registers,
                     (unsigned long long)instructions[entry]);
      if (r.spillBytes == 0 && r.stackBytes == 0) continue;
      ++spilling;
      std::printf("%s %s %s: %lld bytes spilled, %lld registers, %s\n", arch.name.c_str(),
                  problem.text().c_str(), entry.c_str(), (long long)r.spillBytes, (long long)r.registers,
                  schedule.text().c_str());
    }
    std::fflush(stdout);
  }
};

}  // namespace

int main(int count, char** arguments) {
  std::string archName = "sm_90", norms, features = "1024,1001,0", entries, cubins = "yes";
  CLI::App flags("Counts registers, spills and times of the default CUDA kernels of built-in norms.");
  flags.add_option("--arch", archName, "The architecture [sm_90]");
  flags.add_option("--norms", norms, "Names, with commas between them [all]");
  flags.add_option("--features", features, "Numbers; 0: for any number [1024,1001,0]");
  flags.add_option("--entries", entries, "A file for registers and instructions of each entry");
  flags.add_option("--cubins", cubins, "no: only PTX is made [yes]")->check(CLI::IsMember({"yes", "no"}));
  CLI11_PARSE(flags, count, arguments);
  auto found = cuda::findArch(archName);
  if (!found) return std::fprintf(stderr, "%s\n", llvm::toString(found.takeError()).c_str()), 1;
  const cuda::Arch& arch = *found;
  const auto chosen = listOf(norms);
  Census census;
  census.cubins = cubins != "no";
  if (!entries.empty() && !(census.list = std::fopen(entries.c_str(), "w")))
    return std::perror(entries.c_str()), 1;
  for (const BuiltinNorm& norm : builtinNorms()) {
    if (!chosen.empty() && !llvm::is_contained(chosen, norm.name)) continue;
    for (Entry entry : {Entry::Forward, Entry::Backward, Entry::Infer})
      for (const char* dtype : {"f32", "bf16"})
        for (const std::string& text : listOf(features)) {
          const int64_t number = std::stoll(text);
          auto problem = problemOf(norm, {.entry = entry, .features = number ? number : 4, .dtype = dtype});
          if (problem && !number) problem->features.reset();
          if (!problem || !checkProblem(*problem)) continue;
          for (const Candidate& candidate : llvm::cantFail(findTarget(archName))->bind(*problem)->defaults())
            census.count(*problem, llvm::cantFail(cuda::parseSchedule(candidate.schedule)), arch);
        }
  }
  std::printf("%s: %zu kernels, %zu entries, of which %zu spill\n", archName.c_str(), census.ptx.size(),
              census.entries, census.spilling);
  report("a problem to PTX", census.ptx);
  report("PTX to a cubin", census.cubin);
  return census.spilling != 0;
}
