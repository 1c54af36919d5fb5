// normc compile NORM... -o F.npk, and one stage of it as text
#include <algorithm>
#include <chrono>
#include <ostream>
#include <set>

#include "autotune/candidates/Selection.h"
#include "autotune/tune/Interrupt.h"
#include "codegen/Package.h"
#include "codegen/targets/cuda/Ptxas.h"
#include "codegen/targets/halide/HalideTarget.h"
#include "dsl/ForeignWords.h"
#include "dsl/Nearest.h"
#include "runtime/abi/Isa.h"
#include "tools/normc/Cli.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"
#include "tools/normc/ProblemFlags.h"
#include "tools/normc/Progress.h"
#include "tools/normc/RecordFiles.h"
#include "tools/normc/TargetFlag.h"

namespace normc::cli {
namespace {

using codegen::Job;

struct CompileFlags {
  ProblemFlags problems;
  std::vector<std::string> targets{"host"}, printAfter, ptxas;
  std::string schedule, emit, output, records, generator;
  int64_t threads = 0;
  bool ptxOnly = false;
};

/// A target of every generator that is asked for.
std::vector<codegen::TargetPtr> targetsOf(const std::string& name, const std::string& generator) {
  std::vector<codegen::TargetPtr> targets;
  const codegen::TargetPtr mlir = valueOf(codegen::findTarget(targetWord(name)), ExitCode::Usage);
  if (generator != "halide") targets.push_back(mlir);
  // A GPU is left to the one that can; of a CPU `both` means both.
  if (generator == "halide" || (generator == "both" && mlir->device() == "cpu"))
    targets.push_back(valueOf(codegen::halide::findTarget(name), ExitCode::Refused));
  return targets;
}

/// One schedule for all: legal for every problem, or the reasons why not.
Job jobOf(const Problem& problem, const codegen::TargetPtr& target, const std::string& text) {
  const auto schedule = valueOf(target->bind(problem, text), ExitCode::Usage);
  if (const auto reason = schedule->whyIllegal())
    throw usage("the schedule does not fit " + problem.text() + " for " + target->name().str() + ": " +
                *reason);
  return {.problem = problem, .target = target, .schedule = schedule->text(), .origin = "given"};
}

std::vector<Job> jobsOf(const CompileFlags& flags, Output& out) {
  if (flags.problems.inputs.empty())
    throw usage("normc compile needs a norm",
                "e.g. normc compile layer_norm -o layer_norm.npk; see normc list");
  if (!flags.records.empty() && !flags.schedule.empty())
    throw usage("--records and --schedule exclude each other",
                "--records chooses a schedule for each kernel, --schedule is one for all");
  if (!flags.records.empty() && !flags.generator.empty())
    throw usage("--records and --generator exclude each other",
                "a record names the generator of its schedule");
  const std::vector<Problem> problems = problemsOf(flags.problems);
  std::vector<codegen::TargetPtr> targets;
  const std::string generator =
      flags.generator.empty() ? "mlir" : wordOf("--generator", flags.generator, {"mlir", "halide", "both"});
  for (const std::string& name : flags.targets) {
    for (const codegen::TargetPtr& target : targetsOf(name, generator)) {
      const auto same = [&](const codegen::TargetPtr& other) {
        return other->spelling() == target->spelling() && other->generator() == target->generator();
      };
      if (std::none_of(targets.begin(), targets.end(), same)) targets.push_back(target);
    }
  }

  std::optional<tune::Database> records;
  if (!flags.records.empty()) {
    records = valueOf(tune::readDatabase(flags.records), ExitCode::Refused);
    noteFlaws(flags.records, records->counts, out);
  }
  std::vector<Job> jobs;
  for (const Problem& problem : problems) {
    for (const codegen::TargetPtr& target : targets) {
      if (const auto reason = target->bind(problem)->whyIllegal())
        throw usage(problem.text() + " cannot be compiled for " + target->name().str() + ": " + *reason);
      if (!flags.schedule.empty()) {
        jobs.push_back(jobOf(problem, target, flags.schedule));
      } else if (records) {
        for (Job& job : valueOf(tune::selectedJobs(problem, target->spelling(), *records), ExitCode::Usage))
          jobs.push_back(std::move(job));
      } else {
        for (Job& job : codegen::defaultJobs(problem, target)) jobs.push_back(std::move(job));
      }
    }
  }
  codegen::separateCores(jobs);
  if (flags.schedule.empty()) codegen::addFallbacks(jobs);
  return jobs;
}

/// The job of which a flag shows text.
Job oneJob(const std::vector<Job>& jobs, const CompileFlags& flags, const std::string& flag,
           const std::string& value) {
  std::set<std::string> problems, targets;
  for (const Job& job : jobs) {
    problems.insert(job.problem.text());
    targets.insert(job.target->spelling());
  }
  if (problems.size() > 1)
    throw usage(flag + " shows one problem; the command line has " + std::to_string(problems.size()),
                "e.g. normc compile " + flag + " " + value + " '" + jobs[0].problem.text() + "'");
  if (flags.generator == "both")
    throw usage(flag + " shows the stages of one generator; --generator is both");
  if (targets.size() > 1)
    throw usage(flag + " shows one target; --target has " + std::to_string(targets.size()));
  return jobs[0];
}

/// Writes `text` to the output file, or prints it; as JSON with `key` and `value`.
ExitCode show(const std::string& text, const Job& job, const std::string& key, const Json& value,
              const CompileFlags& flags, Output& out) {
  if (!flags.output.empty()) {
    reportOf(flags.output, out);
    writeFile(flags.output, text);
  }
  if (out.json) {
    out.result({{"problem", job.problem.text()},
                {"target", job.targetText()},
                {"schedule", job.schedule},
                {key, value},
                {"text", text}});
  } else if (flags.output.empty()) {
    out.results() << text;
  }
  return ExitCode::Ok;
}

constexpr const char* kStageOfGpus = " is a stage of sm_NN: add --target sm_90";
constexpr const char* kStageOfCpus = " is a stage of CPUs: leave --target out";
constexpr const char* kStageOfHalide = " is a stage of Halide: add --generator halide";

/// The stages of other targets, beside one of the target's own.
constexpr ForeignWord kOtherStages[] = {
    {"gpu", "asm", kStageOfGpus},        {"ptx", "asm", kStageOfGpus},      {"sass", "asm", kStageOfGpus},
    {"halide", "loops", kStageOfHalide}, {"stmt", "loops", kStageOfHalide}, {"loops", "ptx", kStageOfCpus},
    {"asm", "ptx", kStageOfCpus},
};

/// The stage of --emit, one that the target has.
std::string stageOf(const std::string& given, const codegen::Target& target) {
  const std::vector<std::string> stages = target.stages();
  if (std::ranges::count(stages, given) > 0) return given;
  const std::string_view other = foreignHint(kOtherStages, given, stages);
  throw usage(
      "--emit is " + inQuotes(given) + "; for " + target.name().str() + " it must be " + oneOf(stages),
      other.empty() ? didYouMean(given, stages, "") : given + std::string(other));
}

ExitCode emit(const CompileFlags& flags, Output& out) {
  const std::vector<Job> jobs = jobsOf(flags, out);
  const std::string stageName = stageOf(flags.emit, *jobs[0].target);
  const Job job = oneJob(jobs, flags, "--emit", stageName);
  const auto schedule = llvm::cantFail(job.target->bind(job.problem, job.schedule));
  return show(valueOf(schedule->emit(stageName), ExitCode::Refused), job, "stage", stageName, flags, out);
}

ExitCode printAfter(const CompileFlags& flags, Output& out) {
  const Job job = oneJob(jobsOf(flags, out), flags, "--print-after", joined(flags.printAfter, ","));
  const auto schedule = llvm::cantFail(job.target->bind(job.problem, job.schedule));
  const auto passes = valueOf(schedule->passes(flags.printAfter), ExitCode::Refused);
  std::vector<std::string> names;
  std::string text;
  for (const codegen::PassText& pass : passes) {
    names.push_back(pass.pass);
    if (pass.text.empty()) continue;
    text += "// after " + pass.pass + "\n" + pass.text;
    if (!text.ends_with('\n')) text += '\n';
  }
  for (const std::string& name : flags.printAfter) wordOf("--print-after", name, names);
  return show(text, job, "passes", flags.printAfter, flags, out);
}

/// Ctrl-C: nothing is on disk yet, and an old package stays as it was. A package that
/// lacks kernels would pass for a whole one, so what is compiled so far is not one.
[[noreturn]] void leave(const std::string& output, size_t done, size_t total) {
  std::fprintf(stderr, "normc: interrupted after %zu of %zu kernels; %s is not written\n", done, total,
               output.c_str());
  std::fflush(stderr);
  std::_Exit(static_cast<int>(ExitCode::Interrupted));
}

void report(const std::vector<Job>& jobs, const std::string& file, bool byRecords, size_t bytes,
            double seconds, Output& out) {
  std::vector<std::string> norms, targets;
  Json problems = Json::array();
  const auto once = [](std::vector<std::string>& list, const std::string& word) {
    if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
  };
  for (const Job& job : jobs) {
    once(norms, job.problem.spec->name);
    once(targets, job.target->name().str());
    problems.push_back({{"problem", job.problem.text()},
                        {"target", job.targetText()},
                        {"generator", job.target->generator().str()},
                        {"schedule", job.schedule},
                        {"rows_max", job.limits.rowsMax ? Json(*job.limits.rowsMax) : Json()},
                        {"run_min", job.limits.runMin},
                        {"run_max", job.limits.runMax ? Json(*job.limits.runMax) : Json()},
                        {"origin", job.origin}});
  }
  if (out.json) {
    out.result({{"file", file},
                {"bytes", bytes},
                {"seconds", seconds},
                {"norms", norms},
                {"targets", targets},
                {"kernels", problems}});
    return;
  }
  std::ostream& said = reportOf(file, out);
  if (byRecords) {
    const auto chosen =
        std::count_if(jobs.begin(), jobs.end(), [](const Job& job) { return job.fromRecord; });
    said << counted(chosen, "schedule") << " of " << jobs.size() << " chosen by records\n";
  }
  said << file << ": " << counted(int64_t(jobs.size()), "kernel") << " of "
       << counted(int64_t(norms.size()), "norm") << " for " << joined(targets) << ", "
       << bytesText(double(bytes)) << ", compiled in " << secondsText(seconds) << "\n";
}

/// The bytes of the package; leaves the program on Ctrl-C.
std::string build(const std::vector<Job>& jobs, const CompileFlags& flags,
                  const codegen::CubinOptions& cubins, Output& out) {
  const tune::Interrupt interrupt;
  Progress progress(out, "compiling", int64_t(jobs.size()));
  codegen::PackageOptions options;
  options.threads = unsigned(std::min<int64_t>(flags.threads, UINT32_MAX));
  options.cubins = cubins;
  options.progress = [&](size_t done, size_t total, const Job& job) {
    if (interrupt.requested()) {
      progress.clear();
      leave(flags.output, done, total);
    }
    progress.step(int64_t(done), job.problem.text() + " for " + job.target->name().str());
  };
  std::set<std::string> notes;
  options.note = [&](const Job& job, const std::string& note) {
    if (!notes.insert(note).second) return;
    progress.clear();
    out.note(note + "\n  the package holds PTX for " + job.target->name().str() +
             ", which the driver compiles when a plan is made");
  };
  return valueOf(codegen::buildPackage(jobs, options), ExitCode::Refused);
}

/// What --ptx-only and --ptxas say; without them the ptxas that is found, so that the package names its
/// release.
codegen::CubinOptions cubinsOf(const CompileFlags& flags, const std::vector<Job>& jobs) {
  const bool onGpu =
      std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.target->device() != "cpu"; });
  for (const auto& [flag, given] :
       {std::pair("--ptx-only", flags.ptxOnly), {"--ptxas", !flags.ptxas.empty()}})
    if (given && !onGpu)
      throw usage(std::string(flag) + " is for GPUs, and no --target is one",
                  "add a GPU, e.g. --target sm_90, or leave it out");
  if (flags.ptxOnly && !flags.ptxas.empty())
    throw usage("--ptx-only and --ptxas exclude each other", "cubins are made by ptxas");
  codegen::CubinOptions cubins{.make = onGpu && !flags.ptxOnly};
  for (const std::string& program : flags.ptxas) {
    auto assembler = codegen::cuda::assemblerAt(program);
    if (!assembler)
      throw usage("--ptxas is '" + program + "': " + llvm::toString(assembler.takeError()),
                  "e.g. --ptxas /usr/local/cuda/bin/ptxas");
    cubins.assemblers.push_back(std::move(*assembler));
  }
  if (!cubins.make || !cubins.assemblers.empty()) return cubins;
  auto found = codegen::cuda::assemblerAt(codegen::cuda::findPtxas());
  if (found)
    cubins.assemblers.push_back(std::move(*found));
  else
    llvm::consumeError(found.takeError());  // a note of each target says that there is none
  return cubins;
}

/// The output must be none of the files that are read.
void requireOwnOutput(const CompileFlags& flags) {
  if (flags.output.empty()) return;
  std::vector<NamedFile> read = normFilesOf(flags.problems);
  if (!flags.records.empty()) read.push_back({"--records", flags.records});
  requireOwnFile({"-o", flags.output}, read);
  requireWritable(flags.output);
}

ExitCode compile(const CompileFlags& flags, Output& out) {
  requireOwnOutput(flags);
  if (!flags.emit.empty() && !flags.printAfter.empty())
    throw usage("--emit and --print-after exclude each other");
  if (!flags.ptxas.empty() && (!flags.emit.empty() || !flags.printAfter.empty()))
    throw usage("--ptxas is for packages",
                "--emit sass takes the ptxas that is found first: put another one first on the PATH");
  if (!flags.emit.empty()) return emit(flags, out);
  if (!flags.printAfter.empty()) return printAfter(flags, out);
  const std::vector<Job> jobs = jobsOf(flags, out);
  const codegen::CubinOptions cubins = cubinsOf(flags, jobs);
  if (flags.output.empty())
    throw usage("normc compile needs the name of the package to write",
                "-o FILE.npk; or --emit STAGE for text");
  reportOf(flags.output, out);

  const auto start = std::chrono::steady_clock::now();
  const std::string package = build(jobs, flags, cubins, out);
  writeFile(flags.output, package);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  report(jobs, flags.output, !flags.records.empty(), package.size(), took.count(), out);
  return ExitCode::Ok;
}

}  // namespace

Action declareCompile(CLI::App& parser) {
  auto flags = std::make_shared<CompileFlags>();
  flags->problems.declare(parser, "Feature counts to specialise for, beside kernels for any");
  parser.add_option("-o,--output", flags->output, "The package to write; - for the standard output")
      ->type_name("FILE");
  addList(
      parser, "--target", flags->targets,
      "host, " + isaNames() +
          ", with a core behind a colon, as x86-64-v4:zen4; sm_80, sm_90, sm_100 or another sm_NN [host]");
  parser
      .add_option("--generator", flags->generator,
                  "mlir, halide or both; Halide makes kernels for CPUs [mlir]")
      ->type_name("NAME");
  parser.add_option("--schedule", flags->schedule, "For all kernels, as 'normc inspect' prints it")
      ->type_name("TEXT");
  parser
      .add_option("--records", flags->records,
                  "What normc tune measured: chooses the schedules, of either generator")
      ->type_name("FILE");
  parser
      .add_option("--emit", flags->emit,
                  "Show a stage instead: sweeps, loops, llvm, asm; of Halide sweeps, halide, stmt, asm; for "
                  "sm_NN sweeps, gpu, llvm, ptx, sass")
      ->type_name("STAGE");
  addList(
      parser, "--print-after", flags->printAfter,
      "Show the module after passes instead, e.g. norm-to-loops, norm-to-gpu, cse; a wrong name lists them");
  addWhole(parser, "--threads", flags->threads, "To compile with [all]");
  parser.add_flag("--ptx-only", flags->ptxOnly,
                  "Leave out cubins: a smaller package, whose PTX the driver compiles when a plan is made");
  addList(parser, "--ptxas", flags->ptxas,
          "The ptxas that makes cubins; of several, each kernel takes the first that can assemble it [that "
          "of the PATH or of "
          "the CUDA Toolkit]");
  parser.footer(
      "A whole problem, e.g. 'layer_norm:forward@f32[*x768]', is compiled as it stands. With a whole "
      "problem, a .norm\n"
      "file only defines the names that the problem uses.");
  return [flags](Output& out) { return compile(*flags, out); };
}

}  // namespace normc::cli
