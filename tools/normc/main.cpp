// normc: normalization layers from a ten-line text to tuned kernels.
#include <csignal>

#include "autotune/worker/StandardFiles.h"
#include "tools/normc/Cli.h"

int main(int argc, char** argv) {
  using namespace normc::cli;
  normc::tune::reserveStandardFiles();
  std::signal(SIGCHLD, SIG_DFL);  // where it is ignored, as some parents leave it, no child can be waited for
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
  return static_cast<int>(run(
      argc, argv,
      {
          {"list", "The built-in normalizations, one line each", declareList},
          {"fmt", "The canonical text of a .norm file, or all of its errors", declareFmt},
          {"compile", "Compile norms to a package, or show a stage as text", declareCompile},
          {"inspect", "What a package holds", declareInspect},
          {"check", "Judge the kernels of a package by the reference", declareCheck},
          {"run", "Run one kernel on .npy files", declareRun},
          {"explain", "Which kernel serves a problem, and why", declareExplain},
          {"tune", "Find the fastest right schedules for a device", declareTune},
          {"records", "Measurements as data: show, coverage, merge, verify, plot, report", declareRecords},
          {"doctor", "What this machine has, and what is missing", declareDoctor},
      }));
}
