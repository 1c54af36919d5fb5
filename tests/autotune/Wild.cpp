#include "tests/autotune/Wild.h"

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "autotune/tune/Bundle.h"
#include "autotune/tune/Object.h"
#include "dsl/Library.h"
#include "dsl/Print.h"
#include "runtime/normc.h"
#include "tests/runtime/TestPackage.h"

namespace normc::tune::test {

std::string outputOf(const std::string& command, int* code) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe)) text += buffer;
  const int status = pipe ? pclose(pipe) : -1;
  if (code) *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return text;
}

WildTest::WildTest() {
  std::string form = (std::filesystem::temp_directory_path() / "normc-wild-XXXXXX").string();
  folder_ = mkdtemp(form.data());
}
WildTest::~WildTest() { std::filesystem::remove_all(folder_); }

BuiltCandidate WildTest::made(const std::string& entry, double planted) const {
  std::ifstream file(NORMC_WILD_KERNELS, std::ios::binary);
  const std::string object{std::istreambuf_iterator<char>(file), {}};
  package::Writer writer({{"normc", "test"}});
  package::Kernel kernel = normc::test::layerNorm("forward", kFeatures);
  kernel.phases = {{entry, "apply", {package::kSegments, package::kRows}, 4, 2, 8}};
  kernel.scalars = {{"epsilon", 1e-5}, {"planted", planted}};
  kernel.schedule = entry;
  kernel.norm = writer.addNorm("layer_norm", "hash", "norm layer_norm {}\n");
  kernel.blob = writer.addBlob(object, "elf", kernel.isa);
  writer.addKernel(kernel);
  const std::string bytes = writer.bytes();
  BuiltCandidate made{folder_ + "/" + entry + ".npk", objectOf(bytes), ""};
  std::ofstream(made.package, std::ios::binary) << bytes;
  return made;
}

Landscape WildTest::landscapeOf(const std::vector<std::string>& entries) {
  std::vector<Point> points;
  for (size_t i = 0; i < entries.size(); ++i)
    points.push_back({"hand", entries[i], 1 + double(i), {0, int(i)}});
  return Landscape(std::move(points), 0);
}

Setting WildTest::setting() {
  const auto spec = *findNorm("layer_norm");
  Setting setting;
  setting.task = {*parseProblemText("layer_norm:forward@f32[*x24]"),
                  spec->structuralHash(),
                  1,
                  kRows,
                  kFeatures,
                  1,
                  "warm"};
  setting.spec = print(*spec);
  setting.device = {"cpu", normc_cpu_isa(), "a processor", {}};
  setting.toolchain = {{"normc", "test"}};
  setting.session = "wild";
  setting.sampleSeconds = 20e-6;
  setting.patience = 3;
  setting.quietPatience = 0.1;
  return setting;
}

LiveLab::Callbacks WildTest::callbacks(const Landscape& landscape, Journal* journal) const {
  LiveLab::Callbacks callbacks;
  callbacks.make = [this, &landscape](size_t point) { return made(landscape[point].schedule, planted_); };
  callbacks.worker = NORMC_WORKER;
  callbacks.journal = journal;
  return callbacks;
}

void WildTest::pack(const std::vector<std::string>& entries, const std::vector<int64_t>& rows) {
  std::vector<Shipped> tasks;
  const Landscape landscape = landscapeOf(entries);
  for (const int64_t each : rows) {
    Shipped shipped{setting(), {}, {}};
    shipped.setting.device = {"cpu", setting().device.arch, "", {}};
    shipped.setting.task.rows = each;
    for (size_t i = 0; i < entries.size(); ++i) {
      shipped.points.push_back(landscape[i]);
      BuiltCandidate one = made(entries[i]);
      one.package = entries[i] + ".npk";
      shipped.made.push_back(one);
    }
    tasks.push_back(std::move(shipped));
  }
  std::ofstream(folder_ + "/plan.json") << planText(tasks);
}

}  // namespace normc::tune::test
