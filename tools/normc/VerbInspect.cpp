// normc inspect F.npk
#include <ostream>

#include "codegen/Tuning.h"
#include "tools/normc/Cli.h"
#include "tools/normc/PackageFile.h"

namespace normc::cli {
namespace {

struct InspectFlags {
  std::string file;
  bool traffic = false;
};

std::string rangeText(const Json& limits, const char* min, const char* max) {
  const int64_t least = limits.value(min, int64_t(0));
  const bool open = !limits.contains(max) || limits.at(max).is_null();
  if (open) return least == 0 ? "any" : "from " + std::to_string(least);
  return (least == 0 ? "to " : std::to_string(least) + " to ") + std::to_string(limits.at(max).get<int64_t>());
}

std::string rowsOf(const Json& kernel) {
  const Json limits = kernel.value("limits", Json::object());
  const std::string all = rangeText(limits, "rows_min", "rows_max"), run = rangeText(limits, "run_min", "run_max");
  return run == "any" ? all : all + ", of a segment " + run;
}

std::string kernelTable(const PackageFile& file) {
  Table table({">#", "problem", "target", "rows", "schedule", "origin"});
  int64_t index = 0;
  for (const Json& k : file.kernels())
    table.row({std::to_string(index++), k.at("problem"), k.at("isa"), rowsOf(k),
               k.at("generator").get<std::string>() + ": " + k.at("schedule").get<std::string>(),
               k.at("origin")});
  return table.text(2);
}

std::string trafficTable(const PackageFile& file) {
  Table table({">#", "problem", "target", "strategy", ">reads", ">writes", ">total", ">in warmup", ">least", ">rows held"});
  int64_t index = 0;
  for (const Json& k : file.kernels()) {
    const Json& t = k.at("traffic");
    const auto reads = t.at("reads").get<int64_t>(), writes = t.at("writes").get<int64_t>();
    const std::string schedule = k.at("schedule");
    std::string warmup, least, held;
    if (t.contains("least_reads")) least = std::to_string(t["least_reads"].get<int64_t>() + writes);
    if (t.contains("held_rows")) held = std::to_string(t["held_rows"].get<int64_t>());
    if (t.contains("warmup"))
      warmup =
          std::to_string(t["warmup"].at("reads").get<int64_t>() + t["warmup"].at("writes").get<int64_t>());
    table.row({std::to_string(index++), k.at("problem"), k.at("isa"), codegen::strategyOf(schedule),
               std::to_string(reads), std::to_string(writes), std::to_string(reads + writes), warmup, least,
               held});
  }
  return table.text(2);
}

std::string leastNote(const PackageFile& file) {
  for (const Json& k : file.kernels())
    if (k.at("traffic").contains("least_reads"))
      return "least: in total, if all that is read again stayed on chip; so it is for columns of the rows held\n";
  return "";
}

constexpr const char* kClusters =
    "clusters: a cluster lies within a GPC; so many, of so many blocks, does the largest GPC of the usual device hold at once\n";

/// What each launch takes of a GPU, as ptxas said; empty where no kernel has a cubin.
std::string resourcesTable(const PackageFile& file) {
  Table table({">#", "phase", "target", ">threads", ">registers", ">spills", ">shared", ">blocks", ">warps", ">clusters"});
  bool any = false, clustered = false;
  int64_t index = -1;
  for (const Json& k : file.kernels()) {
    ++index;
    for (const Json& phase : k.at("phases")) {
      if (!phase.contains("resources")) continue;
      any = true;
      const Json& r = phase["resources"];
      const auto number = [&](const char* key) { return r.at(key).get<int64_t>(); };
      const Json& launch = phase.at("launch");
      const int64_t threads = launch.at("threads").get<int64_t>(), cluster = launch.value("cluster", int64_t(1));
      const int64_t shared = number("shared") + launch.value("shared", int64_t(0));
      const int64_t clusters = r.value("clusters", int64_t(0));
      clustered |= clusters > 0;
      table.row({std::to_string(index), phase.at("symbol"), k.at("isa"), std::to_string(threads),
                 std::to_string(number("registers")), std::to_string(number("spills")),
                 bytesText(double(shared)), std::to_string(number("blocks")),
                 std::to_string(number("blocks") * threads / 32),
                 clusters ? std::to_string(clusters) + " of " + std::to_string(cluster) : ""});
    }
  }
  return any ? "\nof one multiprocessor: registers a thread, blocks and warps that it holds at once\n" +
                   table.text(2) + (clustered ? kClusters : "")
             : "";
}

std::string head(const PackageFile& file) {
  const Json& m = file.manifest();
  std::vector<std::string> makers;
  for (const auto& [name, version] : m.at("producer").items())
    makers.push_back(name + " " + version.get<std::string>());
  std::string text = file.path() + ": " + counted(int64_t(file.kernels().size()), "kernel") + " of " +
                     counted(int64_t(m.at("norms").size()), "norm") + ", " + bytesText(double(file.bytes())) +
                     ", made by " + joined(makers) + "\n";
  Table norms({"norm", "structural hash"});
  for (const Json& norm : m.at("norms")) norms.row({norm.at("name"), norm.at("hash")});
  Table blobs({"code for", "kind", ">bytes", "sha256 (verified)"});
  for (const Json& blob : m.at("blobs"))
    blobs.row(
        {blob.at("isa"), blob.at("kind"), bytesText(blob.at("bytes").get<double>()), blob.at("sha256")});
  return text + "\n" + norms.text(2) + "\n" + blobs.text(2) + "\n";
}

ExitCode inspect(const InspectFlags& flags, Output& out) {
  if (flags.file.empty()) throw usage("normc inspect needs a package", "e.g. normc inspect layer_norm.npk");
  const PackageFile file(flags.file);
  translated([&] { file.package().verify(); });
  if (out.json) {
    out.result(
        {{"file", file.path()}, {"bytes", file.bytes()}, {"verified", true}, {"manifest", file.manifest()}});
  } else if (flags.traffic) {
    out.results() << "X-sized transfers of each kernel, computed from its sweeps\n" << trafficTable(file)
                  << leastNote(file);
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
