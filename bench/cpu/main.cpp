// normc-bench: the speed of our kernels against oneDNN, PyTorch and copies.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>

#include "bench/cpu/AroundNorms.h"
#include "bench/cpu/Compile.h"
#include "bench/cpu/Heat.h"
#include "bench/cpu/OneDnn.h"
#include "bench/cpu/Options.h"
#include "bench/cpu/Pictures.h"
#include "bench/cpu/Report.h"
#include "bench/cpu/Table.h"
#include "bench/kit/Text.h"
#include "codegen/targets/halide/HalideTarget.h"

namespace normc::bench {
namespace {

/// The problem of a norm for rows x features. What cannot be is said in `notRun`.
std::optional<Problem> problemOf(const Options& options, const std::string& norm, Entry entry, DType data,
                                 int64_t features, std::vector<std::string>& notRun) {
  auto spec = findBenchNorm(norm);
  if (!spec) throw std::runtime_error(text(spec.errors()));
  Problem problem;
  problem.spec = *spec;
  problem.entry = entry;
  problem.data = data;
  problem.params = data == DType::F64 ? DType::F64 : DType::F32;
  problem.features = features;
  problem.segmented = options.partsIntoSegments(**spec);
  problem.layout = options.channelsFirst ? Layout::ChannelsFirst : Layout::FeaturesLast;
  for (const std::string& binding : bindingNames(**spec)) {
    const auto given = options.bindings.find(binding);
    problem.bindings[binding] = given == options.bindings.end() ? 16 : given->second;
  }
  auto checked = checkProblem(problem);
  if (checked) return *checked;
  notRun.push_back("normc cannot run " + norm + " on rows x " + std::to_string(features) +
                   " features: " + checked.errors()[0].message);
  return std::nullopt;
}

/// The problems of one entry, type and number of features, of two or of three dimensions; backward needs its
/// forward too.
struct Family {
  Entry entry;
  DType data;
  int64_t features;
  bool segmented;
  std::vector<Problem> problems;
  std::vector<std::string> notRun;
};

std::vector<Family> familiesOf(const Options& options) {
  std::vector<Family> families;
  for (DType data : options.types)
    for (Entry entry : options.entries)
      for (int64_t features : options.features) {
        Family whole{entry, data, features, false, {}, {}}, segmented{entry, data, features, true, {}, {}};
        for (const std::string& norm : options.norms)
          if (auto problem = problemOf(options, norm, entry, data, features, whole.notRun))
            (problem->segmented ? segmented : whole).problems.push_back(std::move(*problem));
        for (Family& family : {std::ref(whole), std::ref(segmented)}) {
          if (!family.problems.empty() || !family.notRun.empty()) families.push_back(std::move(family));
        }
      }
  return families;
}

std::vector<Problem> allOf(const std::vector<Family>& families) {
  std::map<std::string, Problem> problems;
  for (const Family& family : families) {
    std::vector<Problem> wanted = family.problems;
    std::ranges::copy(bareProblems(family.problems), std::back_inserter(wanted));
    for (Problem problem : wanted) {
      problems.emplace(problem.text(), problem);
      if (!readsSaved(problem.entry)) continue;
      problem.entry = Entry::Forward;
      problems.emplace(problem.text(), problem);
    }
  }
  std::vector<Problem> list;
  for (auto& [text, problem] : problems) list.push_back(std::move(problem));
  if (list.empty()) throw std::runtime_error("nothing to run: " + families.at(0).notRun.at(0));
  return list;
}

Kernels compileAll(const std::vector<Problem>& list, llvm::Expected<codegen::TargetPtr> target) {
  if (!target) throw std::runtime_error(llvm::toString(target.takeError()));
  std::optional<Kernels> kernels;
  const double seconds = timed(1, [&] { kernels.emplace(compile(list, *target)); });
  std::printf("%zu problems compiled through %s in %.1f s for %s\n", list.size(),
              (*target)->generator().str().c_str(), seconds, (*target)->spelling().c_str());
  return *std::move(kernels);
}

std::string besideThis(const char* file) {
  return std::filesystem::canonical("/proc/self/exe").replace_filename(file);
}

/// Fails before the races for a file that cannot be written, or that is read too.
void requireOwnJson(const Options& options) {
  const std::string& file = options.jsonFile;
  if (file.empty()) return;
  std::error_code none;
  if (!options.before.empty() && std::filesystem::equivalent(file, options.before, none))
    throw std::runtime_error("--json " + file + " is the same file as --before " + options.before +
                             ", which it would replace; name another file for --json");
  if (!std::ofstream(file, std::ios::app))
    throw std::runtime_error("cannot write " + file + ": " + std::strerror(errno));
}

/// Prints the tables over all heats, and writes the files that were asked for, the one with the samples
/// first.
void finish(const Options& options, const std::vector<Heat>& heats, const Machine& machine,
            const std::vector<std::string>& peers) {
  std::printf("\n%s", tablesOfAll(heats, options.cliffs).c_str());
  if (!options.jsonFile.empty()) writeText(options.jsonFile, toJson(heats, machine, peers).dump(1) + "\n");
  if (!options.reportFolder.empty())
    writeReport(options.reportFolder, options.command, heats, machine, peers, options.cliffs);
}

bool hasRun(const Heat& heat) {
  return std::ranges::any_of(heat.entrants, [](const Entrant& e) { return !e.samples.empty(); });
}

void run(const Options& options, const Machine& machine) {
  if (!options.drawnFolder.empty()) {
    for (const std::string& file : drawAgain(options.drawnFolder)) std::printf("%s\n", file.c_str());
    return;
  }
  requireOwnJson(options);
  if (!options.reportFolder.empty()) makeReportFolder(options.reportFolder);
  std::printf("%s\n", machine.text().c_str());
  std::vector<std::string> peers;
  std::optional<TorchPeer> torch;
  if (options.oneDnn && !oneDnnVersion().empty()) peers.push_back(oneDnnVersion());
  if (options.torch) {
    torch.emplace(options.python, besideThis("torch_peer.py"));
    if (!torch->version().empty())
      peers.push_back(torch->version());
    else if (options.python != NORMC_BENCH_PYTHON)
      throw std::runtime_error("--python " + options.python + " runs no PyTorch; --no-torch does without");
  }
  for (const std::string& peer : peers) std::printf("peer: %s\n", peer.c_str());
  const std::vector<Family> families = familiesOf(options);
  const std::vector<Problem> problems = allOf(families);
  const Kernels kernels = compileAll(problems, codegen::findTarget(options.target));
  std::optional<Kernels> halide;
  if (options.halide) halide.emplace(compileAll(problems, codegen::halide::findTarget(options.target)));
  std::optional<Kernels> before;
  if (!options.before.empty()) before.emplace(options.before);
  const OtherKernels others{halide ? &*halide : nullptr, before ? &*before : nullptr};

  std::vector<Heat> heats;
  const auto raceOne = [&](const Rows& rows, const Family& family, int threads) {
    const int64_t count = rows.of(family.features, family.data, machine);
    const HeatPlan plan{family.entry, family.data, options.shapeOf(count, family.features, family.segmented),
                        threads, rows.place()};
    Heat heat = runHeat(plan, family.problems, kernels, others, options.oneDnn, torch ? &*torch : nullptr,
                        options.race);
    heat.notRun.insert(heat.notRun.end(), family.notRun.begin(), family.notRun.end());
    std::printf("\n%s", table(heat).c_str());
    std::fflush(stdout);
    heats.push_back(std::move(heat));
  };
  try {
    for (const Rows& rows : options.rows)
      for (const Family& family : families)
        for (int threads : options.threads) raceOne(rows, family, threads);
  } catch (const std::exception& error) {
    if (heats.empty()) throw;
    heats.back().notRun.push_back("all behind " + heats.back().plan.text() + ", since " + error.what());
    finish(options, heats, machine, peers);
    throw;
  }
  finish(options, heats, machine, peers);
  if (std::ranges::none_of(heats, hasRun)) throw std::runtime_error("nothing ran; the reasons stand above");
}

}  // namespace
}  // namespace normc::bench

int main(int argc, char** argv) {
  using namespace normc::bench;
  const Machine machine = thisMachine();
  Options options;
  options.python = NORMC_BENCH_PYTHON;
  int exitCode = 0;
  if (!readOptions(argc, argv, machine, options, exitCode)) return exitCode;
  try {
    run(options, machine);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "normc-bench: %s\n", error.what());
    return 1;
  }
}
