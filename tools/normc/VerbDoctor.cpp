// normc doctor
#include <unistd.h>

#include <algorithm>
#include <ostream>

#include "autotune/check/Emulation.h"
#include "autotune/measure/Caches.h"
#include "autotune/measure/Machine.h"
#include "autotune/worker/Worker.h"
#include "codegen/Target.h"
#include "codegen/targets/cuda/Ptxas.h"
#include "codegen/targets/halide/Process.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Program.h"
#include "runtime/normc.hpp"
#include "tools/normc/Cli.h"
#include "tools/normc/Failure.h"
#include "tools/normc/SelfTest.h"

namespace normc::cli {
namespace {

/// One line of the report.
struct Finding {
  std::string item;
  enum Status { Present, Absent, Missing } status;  ///< Absent: normc does without it
  std::string detail;
  std::string remedy;
};

Finding processor() {
  const measure::Machine machine = measure::thisMachine();
  return {"processor", Finding::Present,
          machine.processor + ", " + counted(machine.processors, "usable core"), ""};
}

Finding memory() {
  const auto size = [](int64_t bytes) {
    return bytes > 0 ? bytesText(double(bytes)) : std::string("unknown");
  };
  const measure::Caches caches = measure::thisCaches();
  const double bytes = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  return {"memory", Finding::Present,
          bytesText(bytes) + "; caches: L1 " + size(caches.first) + ", L2 " + size(caches.second) + ", L3 " +
              size(caches.last),
          ""};
}

Finding instructionSets() {
  const std::string here = normc_cpu_isa();
  std::vector<std::string> names = codegen::targetNames();
  names.erase(names.begin());  // host
  const std::string compiled = joined(names);
  if (here == "none")
    return {"instruction sets", Finding::Missing, "this processor has none of " + compiled,
            "kernels can be compiled here for another machine: --target"};
  const std::string host = valueOf(codegen::findTarget("host"), ExitCode::Refused)->spelling();
  return {"instruction sets", Finding::Present,
          "runs " + here + "; host is " + host + "; compiles " + compiled, ""};
}

Finding emulator() {
  for (const char* name : {"qemu-aarch64", "qemu-aarch64-static"})
    if (const auto path = llvm::sys::findProgramByName(name))
      return {"AArch64 emulator", Finding::Present, *path, ""};
  return {"AArch64 emulator", Finding::Absent, "AArch64 kernels compile but cannot be tried here",
          "apt-get install qemu-user"};
}

/// The assembler that codegen/targets/cuda calls.
Finding assembler() {
  if (const std::string path = codegen::cuda::findPtxas(); !path.empty())
    return {"ptxas", Finding::Present, path, ""};
  return {"ptxas", Finding::Absent,
          "packages for GPUs hold PTX only, which the driver compiles when a plan is made",
          "install the CUDA toolkit"};
}

Finding secondGenerator() {
  auto generator = codegen::halide::findGenerator();
  if (generator) {
    auto version =
        codegen::halide::versionOf(*generator);  // the file alone says nothing of the libraries it needs
    if (version)
      return {"Halide generator", Finding::Present, generator->program + ", Halide " + *version, ""};
    std::string why = llvm::toString(version.takeError());
    why.erase(why.find_last_not_of('\n') + 1);
    std::replace(why.begin(), why.end(), '\n', ' ');
    return {"Halide generator", Finding::Absent, why,
            "put libHalide.so where it is looked for (docs/halide.md, Where libHalide.so is), or take the "
            "program away"};
  }
  llvm::consumeError(generator.takeError());
  return {"Halide generator", Finding::Absent, "kernels are made through MLIR alone",
          "scripts/setup --halide; then configure and build again"};
}

/// Reports the emulator, which tries CUDA kernels without a GPU.
Finding cudaEmulator() {
  const Result<std::string> library = check::emulatorLibrary();
  if (library)
    return {"CUDA emulator", Finding::Present, "normc check --emulate tries kernels for GPUs here", ""};
  const Diagnostic& why = library.errors().front();
  return {"CUDA emulator", Finding::Absent, why.message, why.hint};
}

/// Reports the program that measures kernels.
Finding worker() {
  try {
    return {"worker", Finding::Present, tune::Worker::besideThis(), ""};
  } catch (const std::runtime_error& error) {
    return {"worker", Finding::Missing, error.what(), "build or install normc-worker beside normc"};
  }
}

Finding plotter() {
  if (const auto path = llvm::sys::findProgramByName("gnuplot"))
    return {"gnuplot", Finding::Present, *path, ""};
  return {"gnuplot", Finding::Absent, "normc records plot draws nothing without it",
          "apt-get install gnuplot-nox"};
}

/// Reports the devices that the runtime finds, or why there are none.
std::vector<Finding> gpus() {
  try {
    host::Context context;
    std::vector<Finding> list;
    for (int i = 0; i < context.cudaDevices(); ++i) {
      const normc_cuda_device d = context.cudaDevice(i);
      list.push_back({"CUDA device " + std::to_string(i), Finding::Present,
                      std::string(d.name) + ", sm_" + std::to_string(10 * d.compute_major + d.compute_minor) +
                          ", " + counted(d.multiprocessors, "multiprocessor") + ", " +
                          bytesText(double(d.memory_bytes)) + ", L2 " + bytesText(double(d.l2_bytes)) +
                          ", driver for CUDA " + std::to_string(d.driver_version / 1000) + "." +
                          std::to_string(d.driver_version / 10 % 100),
                      ""});
    }
    return list;
  } catch (const host::Error& error) {
    return {{"CUDA device", Finding::Absent, error.what(), ""}};
  }
}

std::vector<Finding> examine() {
  const SelfTest test = selfTest();
  std::vector<Finding> findings{
      {"normc", Finding::Present, normc_version(), ""},
      {"code generation", Finding::Present, "LLVM and MLIR " LLVM_VERSION_STRING, ""},
      processor(),
      memory(),
      instructionSets()};
  findings.push_back({"threads", test.threads.empty() ? Finding::Missing : Finding::Present,
                      test.threads.empty() ? "unknown: no kernel could be loaded" : test.threads, ""});
  findings.push_back(worker());
  findings.push_back(emulator());
  findings.push_back(assembler());
  findings.push_back(secondGenerator());
  findings.push_back(cudaEmulator());
  findings.push_back(plotter());
  for (Finding& f : gpus()) findings.push_back(std::move(f));
  findings.push_back({"self-test", test.ok ? Finding::Present : Finding::Missing, test.text, ""});
  return findings;
}

ExitCode doctor(Output& out) {
  static constexpr const char* words[] = {"ok", "absent", "MISSING"};
  const std::vector<Finding> findings = examine();
  bool healthy = true;
  Json list = Json::array();
  Table table({"", "", ""});
  for (const Finding& f : findings) {
    healthy &= f.status != Finding::Missing;
    list.push_back(
        {{"item", f.item}, {"status", words[f.status]}, {"detail", f.detail}, {"remedy", f.remedy}});
    table.row({f.item, words[f.status], f.detail});
    if (!f.remedy.empty()) table.row({"", "", "to get it: " + f.remedy});
  }
  if (out.json) {
    out.result({{"healthy", healthy}, {"findings", list}});
  } else {
    out.results() << table.text().substr(1)
                  << (healthy ? "\nThis machine compiles and runs kernels.\n"
                              : "\nSomething that normc needs is missing; see above.\n");
  }
  return healthy ? ExitCode::Ok : ExitCode::Refused;
}

}  // namespace

Action declareDoctor(CLI::App&) { return doctor; }

}  // namespace normc::cli
