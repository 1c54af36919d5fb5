#include "tools/normc/Plot.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <utility>

#include "autotune/records/Standing.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"
#include "tools/normc/RecordFiles.h"
#include "tools/normc/TaskRecords.h"
#include "tools/plot/Gnuplot.h"

namespace normc::cli {
namespace {

namespace fs = std::filesystem;
using plot::block, plot::plain, tune::Record;

double elementsOf(const tune::Task& task) { return double(task.totalRows()) * double(task.features); }

/// Billions of elements of x in a second. What a norm reads and writes beside x is not recorded.
double rate(const Record& choice, const tune::Samples& samples) {
  return samples.empty() ? 0 : elementsOf(choice.task) / measure::median(samples) * 1e-9;
}

/// Returns the hashes that tell norms of one name, and devices, apart.
std::string hashesOf(const Record& r) {
  return "norm " + shortHash(r.task.norm) + ", device " + shortHash(r.device.id());
}

/// The properties that the points of a line share: all but the sizes.
std::string seriesOf(const Record& r) {
  return anySizesOf(r.task) + ", " + counted(r.task.threads, "thread") + ", " + r.task.policy + ", " +
         hashesOf(r);
}

std::string rowsOf(const tune::Task& task) {
  return (task.segments > 1 ? counted(task.segments, "segment") + " of " : "") + counted(task.rows, "row");
}

std::string landscapeScript(const tune::Database& all) {
  std::string data, plot;
  int index = 0;
  for (const auto& [key, records] : taskRecordsOf(all)) {
    std::vector<double> ratios;
    for (const auto& [candidate, times] : timesOf(records, "screen"))
      ratios.push_back(measure::medianRatio(times.samples, times.reference));
    if (ratios.empty()) continue;
    std::sort(ratios.begin(), ratios.end());
    std::string rows;
    for (size_t i = 0; i < ratios.size(); ++i)
      rows += std::to_string(i + 1) + " " + std::to_string(ratios[i]) + "\n";
    const Record& any = *records.any;
    const std::string title = any.task.text() + ", " + hashesOf(any) + ", " + toolsOf(any);
    const std::string name = "task" + std::to_string(index++);
    data += block(name, rows);
    plot +=
        (plot.empty() ? "plot " : ", ") + ("$" + name + " with linespoints title \"" + plain(title) + "\"");
  }
  if (plot.empty()) return "";
  return data +
         "set title \"Candidates, each beside the default\"\nset xlabel \"candidates, the fastest "
         "first\"\nset ylabel \"time of a call, of the default\"\n" +
         "set key below vertical maxcols 1\n" + plot +
         ", 1 with lines dashtype 2 linecolor \"black\" title \"the default\"\n";
}

std::string choicesScript(const tune::Database& all, bool overFeatures) {
  // Tasks of several shapes have x of the same size.
  std::map<std::string, std::multimap<double, std::pair<double, double>>> series;
  for (const Record* r : tune::standingChoices(all.records)) {
    const tune::Task& task = r->task;
    const std::string name = seriesOf(*r) + (overFeatures ? ", " + rowsOf(task) : "");
    const double x = overFeatures ? double(task.features) : bytes(task.problem.data) * elementsOf(task);
    series[name].emplace(x, std::pair(rate(*r, r->reference), rate(*r, r->samples)));
  }
  std::string data, plot;
  int index = 0;
  for (const auto& [name, points] : series) {
    std::string rows;
    for (const auto& [x, speeds] : points)
      rows +=
          std::to_string(x) + " " + std::to_string(speeds.first) + " " + std::to_string(speeds.second) + "\n";
    const std::string label = "series" + std::to_string(index),
                      color = " linecolor " + std::to_string(++index);
    data += block(label, rows);
    plot += (plot.empty() ? "plot " : ", ") +
            ("$" + label + " using 1:3 with linespoints" + color + " title \"" + plain(name) + ", tuned\"") +
            ", $" + label + " using 1:2 with linespoints dashtype 2" + color + " title \"default\"";
  }
  if (plot.empty()) return "";
  return data +
         (overFeatures ? "set title \"Speed over feature counts\"\nset xlabel \"features\"\n"
                       : "set title \"Speed over the bytes of x\"\nset xlabel \"bytes\"\n") +
         "set ylabel \"elements of x in a second, billions\"\nset logscale x 2\nset yrange [0:*]\n"
         "set key below vertical maxcols 1\n" +
         plot + "\n";
}

}  // namespace

std::string plotScript(const tune::Database& all, const std::string& picture) {
  return picture == "landscape" ? landscapeScript(all) : choicesScript(all, picture == "features");
}

ExitCode plotRecords(const tune::Database& all, const std::string& given, const std::vector<NamedFile>& read,
                     Output& out) {
  std::vector<plot::Picture> pictures;
  for (const std::string name : {"landscape", "features", "roofline"}) {
    const std::string script = plotScript(all, name);
    if (script.empty()) continue;
    const size_t axes = script.find("set title");
    pictures.push_back({name, script.substr(0, axes), script.substr(axes)});
  }
  if (pictures.empty()) throw nothingTo("draw");
  if (!plot::isThere())
    throw refused("pictures are drawn by gnuplot, which is not on the PATH",
                  "on Debian: apt-get install gnuplot-nox");
  const std::string folder = given.empty() ? "." : given;
  std::error_code none;
  fs::create_directories(folder, none);
  auto drawn = plot::draw(pictures);
  if (!drawn) throw refused(llvm::toString(drawn.takeError()));
  std::vector<std::string> files;
  for (const plot::Drawn& each : *drawn) {
    files.push_back(folder + "/" + each.file);
    requireOwnFile({"the picture", files.back()}, read);
    requireWritable(files.back());
  }
  for (size_t i = 0; i < files.size(); ++i) writeFile(files[i], (*drawn)[i].bytes);
  if (out.json)
    out.result({{"files", files}});
  else
    for (const std::string& file : files) out.results() << file << "\n";
  return ExitCode::Ok;
}

}  // namespace normc::cli
