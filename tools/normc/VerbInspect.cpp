// normc inspect F.npk
#include <ostream>

#include "autotune/gate/PackageFile.h"
#include "codegen/Tuning.h"
#include "tools/normc/Cli.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Values.h"

namespace normc::cli {
namespace {

using gate::PackageFile;

struct InspectFlags {
  std::string file;
  bool traffic = false;
};

std::string rangeText(int64_t least, std::optional<int64_t> most) {
  if (!most) return least == 0 ? "any" : "from " + std::to_string(least);
  return (least == 0 ? "to " : std::to_string(least) + " to ") + std::to_string(*most);
}

std::string rowsOf(const package::Limits& limits) {
  const std::string all = rangeText(limits.rowsMin, limits.rowsMax),
                    run = rangeText(limits.runMin, limits.runMax);
  return run == "any" ? all : all + ", of a segment " + run;
}

std::string kernelTable(const PackageFile& file) {
  Table table({">#", "problem", "target", "rows", "schedule", "origin"});
  int64_t index = 0;
  for (const package::Kernel& k : file.kernels())
    table.row({std::to_string(index++), k.problem, k.target(), rowsOf(k.limits),
               k.generator + ": " + k.schedule, k.origin});
  return table.text(2);
}

std::string trafficTable(const PackageFile& file) {
  Table table({">#", "problem", "target", "strategy", ">reads", ">writes", ">total", ">in warmup", ">least",
               ">rows held"});
  int64_t index = 0;
  for (const package::Kernel& k : file.kernels()) {
    const package::Traffic& t = k.traffic;
    std::string warmup, least, held;
    if (t.leastReads) least = std::to_string(t.least() + t.writes);
    if (t.heldRows) held = std::to_string(t.heldRows);
    if (k.warmupTraffic) warmup = std::to_string(k.warmupTraffic->reads + k.warmupTraffic->writes);
    table.row({std::to_string(index++), k.problem, k.target(), k.strategy(), std::to_string(t.reads),
               std::to_string(t.writes), std::to_string(t.reads + t.writes), warmup, least, held});
  }
  return table.text(2);
}

std::string leastNote(const PackageFile& file) {
  for (const package::Kernel& k : file.kernels())
    if (k.traffic.leastReads)
      return "least: in total, if all that is read again stayed on chip; so it is for columns of the rows "
             "held\n";
  return "";
}

constexpr const char* kClusters =
    "clusters: a cluster lies within a GPC; so many, of so many blocks, does the largest GPC of the usual "
    "device hold at once\n";

/// Returns the resources of each launch on a GPU, from ptxas; empty if no kernel has a cubin.
std::string resourcesTable(const PackageFile& file) {
  Table table({">#", "phase", "target", ">threads", ">registers", ">spills", ">shared", ">blocks", ">warps",
               ">clusters"});
  bool any = false, clustered = false;
  int64_t index = -1;
  for (const package::Kernel& k : file.kernels()) {
    ++index;
    for (const package::Phase& phase : k.phases) {
      if (!phase.resources || !phase.launch) continue;
      any = true;
      const package::Resources& r = *phase.resources;
      const package::Launch& launch = *phase.launch;
      clustered |= r.clusters > 0;
      table.row({std::to_string(index), phase.symbol, k.target(), std::to_string(launch.threads),
                 std::to_string(r.registers), std::to_string(r.spills),
                 bytesText(double(r.shared + launch.shared)), std::to_string(r.blocks),
                 std::to_string(r.blocks * launch.threads / 32),
                 r.clusters ? std::to_string(r.clusters) + " of " + std::to_string(launch.cluster) : ""});
    }
  }
  return any ? "\nof one multiprocessor: registers a thread, blocks and warps that it holds at once\n" +
                   table.text(2) + (clustered ? kClusters : "")
             : "";
}

std::string head(const PackageFile& file) {
  const package::Manifest& m = file.manifest();
  std::vector<std::string> makers;
  for (const auto& [name, version] : m.producer) makers.push_back(name + " " + version);
  std::string text = file.path() + ": " + counted(int64_t(m.kernels.size()), "kernel") + " of " +
                     counted(int64_t(m.norms.size()), "norm") + ", " + bytesText(double(file.bytes())) +
                     ", made by " + joined(makers) + "\n";
  Table norms({"norm", "structural hash"});
  for (const package::Norm& norm : m.norms) norms.row({norm.name, norm.hash});
  Table blobs({"code for", "kind", ">bytes", "sha256 (verified)"});
  for (const package::Blob& blob : m.blobs)
    blobs.row({blob.isa, blob.kind, bytesText(double(blob.bytes)), blob.sha256});
  return text + "\n" + norms.text(2) + "\n" + blobs.text(2) + "\n";
}

ExitCode inspect(const InspectFlags& flags, Output& out) {
  if (flags.file.empty()) throw usage("normc inspect needs a package", "e.g. normc inspect layer_norm.npk");
  requirePackage(flags.file);
  const PackageFile file(flags.file);
  file.package().verify();
  if (out.json) {
    out.result({{"file", file.path()},
                {"bytes", file.bytes()},
                {"verified", true},
                {"manifest", Json::parse(file.package().manifest())}});  // as it stands in the file
  } else if (flags.traffic) {
    out.results() << "X-sized transfers of each kernel, computed from its sweeps\n"
                  << trafficTable(file) << leastNote(file);
  } else {
    out.results() << head(file) << kernelTable(file) << resourcesTable(file);
  }
  return ExitCode::Ok;
}

}  // namespace

Action declareInspect(CLI::App& parser) {
  auto flags = std::make_shared<InspectFlags>();
  parser.add_option("FILE", flags->file, "A package (.npk)")->type_name("");
  parser.add_flag("--traffic", flags->traffic,
                  "How often each kernel reads and writes a tensor of the size of x");
  return [flags](Output& out) { return inspect(*flags, out); };
}

}  // namespace normc::cli
