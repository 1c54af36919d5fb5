// normc check F.npk [PROBLEM]
#include <algorithm>
#include <ostream>

#include "autotune/check/Checker.h"
#include "autotune/gate/Trials.h"
#include "autotune/tune/Interrupt.h"
#include "codegen/Tuning.h"
#include "tools/normc/Cli.h"
#include "tools/normc/FreeMemory.h"
#include "tools/normc/Place.h"
#include "tools/normc/Progress.h"
#include "tools/normc/Values.h"

namespace normc::cli {
namespace {

using check::Checker, gate::KernelVerdict, gate::PackageFile;

struct CheckFlags {
  std::string file, problem;
  PlaceFlags place;
  bool emulate = false;
};

/// True if the kernel can serve the problem, whatever else the package holds.
bool serves(Problem kernel, const Problem& wanted) {
  if (!kernel.features) kernel.features = wanted.features;
  return kernel.text() == wanted.text();
}

std::vector<size_t> kernelsToCheck(const PackageFile& file, const std::optional<Problem>& wanted) {
  std::vector<size_t> list;
  for (size_t i = 0; i < file.kernels().size(); ++i)
    if (!wanted || serves(valueOf(file.problem(file.kernels()[i].problem), ExitCode::Usage), *wanted))
      list.push_back(i);
  if (wanted && list.empty())
    throw refused("no kernel of " + file.path() + " serves " + wanted->text(),
                  "normc inspect lists what it has");
  return list;
}

/// Fails if a kernel needs more memory than there is, before the first one is judged.
void requireMemoryFor(const PackageFile& file, const std::vector<size_t>& list,
                      const std::optional<Problem>& wanted) {
  for (const size_t kernel : list) {
    const Problem problem = valueOf(file.problem(file.kernels()[kernel].problem), ExitCode::Usage);
    if (const auto features = problem.features ? problem.features : wanted ? wanted->features : std::nullopt)
      requireMemory("a check of " + counted(*features, "feature"), gate::bytesOfTrials(problem, *features));
  }
}

std::string resultOf(const KernelVerdict& v) {
  if (!v.skipped.empty()) return "not run: " + v.skipped;
  if (v.failed) return "WRONG in " + std::to_string(v.failed) + " of " + std::to_string(v.trials);
  return v.emulated ? "right, emulated" : "right";
}

Json jsonOf(const KernelVerdict& v, const package::Kernel& kernel) {
  return {{"kernel", v.kernel},
          {"problem", kernel.problem},
          {"target", kernel.target()},
          {"schedule", kernel.schedule},
          {"result", !v.skipped.empty() ? "not_run"
                     : v.failed         ? "wrong"
                                        : "right"},
          {"emulated", v.emulated},
          {"trials", v.trials},
          {"shortened", v.shortened},
          {"failed", v.failed},
          {"worst_error_of_bound", v.worstRatio},
          {"worst_output", v.worstOutput},
          {"failures", v.failures},
          {"reason", v.skipped}};
}

struct Counts {
  int64_t right = 0, wrong = 0, notRun = 0;

  void add(const KernelVerdict& v) { ++(!v.skipped.empty() ? notRun : v.failed ? wrong : right); }
};

void report(const PackageFile& file, const Checker& checker, const std::vector<KernelVerdict>& verdicts,
            const Counts& counts, bool whole, Output& out) {
  if (out.json) {
    Json kernels = Json::array();
    for (const KernelVerdict& v : verdicts) kernels.push_back(jsonOf(v, file.kernels()[v.kernel]));
    out.result({{"file", file.path()},
                {"processor", checker.text()},
                {"right", counts.right},
                {"wrong", counts.wrong},
                {"not_run", counts.notRun},
                {"complete", whole},
                {"kernels", kernels}});
    return;
  }
  Table table({">#", "problem", "target", "strategy", ">trials", ">error/bound", "in", "result"});
  for (const KernelVerdict& v : verdicts) {
    const package::Kernel& kernel = file.kernels()[v.kernel];
    table.row({std::to_string(v.kernel), kernel.problem, kernel.target(), kernel.strategy(),
               std::to_string(v.trials), v.trials ? digitsText(v.worstRatio, 3) : "", v.worstOutput,
               resultOf(v)});
  }
  out.results() << table.text();
  for (const KernelVerdict& v : verdicts)
    for (const std::string& failure : v.failures)
      out.results() << "\nkernel " << v.kernel << ": " << failure << "\n";
  int64_t shortened = 0;
  for (const KernelVerdict& v : verdicts) shortened += v.shortened;
  if (shortened)
    out.results() << "\n"
                  << counted(shortened, "trial") << " on the emulator had fewer rows than elsewhere\n";
  out.results() << "\n"
                << counted(int64_t(verdicts.size()), "kernel")
                << " against the reference in double precision: " << counts.right << " right, "
                << counts.wrong << " wrong, " << counts.notRun << " not run"
                << (whole ? "" : "; interrupted, the rest is not checked") << "\n";
}

ExitCode checkPackage(const CheckFlags& flags, Output& out) {
  if (flags.file.empty()) throw usage("normc check needs a package", "e.g. normc check layer_norm.npk");
  const Place place(flags.place);
  if (flags.emulate && place.onCuda())
    throw usage("--emulate and --device " + place.text() + " exclude each other");
  requirePackage(flags.file);
  const PackageFile file(flags.file, 0, place.cudaLibrary());
  std::optional<Problem> wanted;
  if (!flags.problem.empty()) wanted = valueOf(file.problem(flags.problem), ExitCode::Usage);
  const std::vector<size_t> list = kernelsToCheck(file, wanted);
  const auto forCuda = [&](size_t kernel) { return file.kernels()[kernel].onCuda(); };
  if (flags.emulate && std::none_of(list.begin(), list.end(), forCuda))
    throw refused(file.path() + " has no kernel for a CUDA device here, so there is nothing to emulate",
                  "leave out --emulate, or compile with --target sm_90");
  std::optional<std::string> emulator;
  if (flags.emulate) emulator = valueOf(check::emulatorLibrary(), ExitCode::Refused);
  Checker checker = place.asked([&] { return Checker(file, place.cuda(), emulator); });
  requireMemoryFor(file, list, wanted);

  std::vector<KernelVerdict> verdicts;
  Counts counts;
  tune::Interrupt interrupt;
  {
    Progress progress(out, "checking", int64_t(list.size()));
    for (const size_t kernel : list) {
      if (interrupt.requested()) break;
      progress.step(int64_t(verdicts.size()), file.kernels()[kernel].problem);
      KernelVerdict verdict =
          valueOf(checker.check(kernel, {.features = wanted ? wanted->features : std::nullopt,
                                         .stop = [&] { return interrupt.requested(); }}),
                  ExitCode::Usage);
      if (interrupt.requested() && verdict.failed == 0) break;  // not all of its trials were made
      counts.add(verdict);
      verdicts.push_back(std::move(verdict));
    }
  }
  const bool whole = verdicts.size() == list.size();
  report(file, checker, verdicts, counts, whole, out);
  if (counts.wrong) return ExitCode::CheckFailed;
  if (!whole) return ExitCode::Interrupted;
  if (counts.right == 0)
    throw refused("no kernel of " + file.path() + " was run here, so nothing is checked");
  return ExitCode::Ok;
}

}  // namespace

Action declareCheck(CLI::App& parser) {
  auto flags = std::make_shared<CheckFlags>();
  parser.add_option("FILE", flags->file, "A package (.npk)")->type_name("");
  parser.add_option("PROBLEM", flags->problem, "Only kernels that can serve it")->type_name("");
  flags->place.declare(parser);
  parser.add_flag("--emulate", flags->emulate, "Run kernels for CUDA devices on the emulator, without a GPU");
  parser.footer(
      "Every kernel that can run where --device says meets hostile data, odd sizes and every placement of\n"
      "its arguments; kernels of any number of features meet several. error/bound is the largest error over\n"
      "what the language's tolerance allows. The emulator also reports races, accesses out of bounds and\n"
      "barriers that not all threads reach, with the instruction.");
  return [flags](Output& out) { return checkPackage(*flags, out); };
}

}  // namespace normc::cli
