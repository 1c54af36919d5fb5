#include "tools/normc/Plot.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>

#include "autotune/records/Standing.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"
#include "tools/normc/RecordFiles.h"
#include "tools/plot/Gnuplot.h"

namespace normc::cli {
namespace {

namespace fs = std::filesystem;
using plot::block, plot::plain, tune::Record;

/// Bytes that a call has to move: its X-sized tensors, once each.
double bytesOf(const tune::Task& task) {
  return (task.problem.isBackward() ? 3.0 : 2.0) * bytes(task.problem.data) * double(task.segments) *
         double(task.rows) * double(task.features);
}

double rate(const Record& choice, const tune::Samples& samples) {
  return samples.empty() ? 0 : bytesOf(choice.task) / measure::median(samples) * 1e-9;
}

/// The properties that the lines of one picture share: all but the features.
std::string seriesOf(const tune::Task& task) { return task.problem.head() + ", " + task.policy; }

std::string landscapeScript(const tune::Database& all) {
  std::map<std::string, std::vector<double>> ratios;
  for (const Record& r : all.records)
    if (r.kind == "trial" && r.status == tune::Status::Ok && r.stage == "screen" && !r.samples.empty())
      ratios[r.task.text()].push_back(measure::median(r.samples) / measure::median(r.reference));
  std::string data, plot;
  int index = 0;
  for (auto& [task, list] : ratios) {
    std::sort(list.begin(), list.end());
    std::string rows;
    for (size_t i = 0; i < list.size(); ++i)
      rows += std::to_string(i + 1) + " " + std::to_string(list[i]) + "\n";
    const std::string name = "task" + std::to_string(index++);
    data += block(name, rows);
    plot +=
        (plot.empty() ? "plot " : ", ") + ("$" + name + " with linespoints title \"" + plain(task) + "\"");
  }
  if (plot.empty()) return "";
  return data +
         "set title \"Candidates, each beside the default\"\nset xlabel \"candidates, the fastest "
         "first\"\nset ylabel \"time of a call, of the default\"\n" +
         "set key below vertical maxcols 1\n" + plot +
         ", 1 with lines dashtype 2 linecolor \"black\" title \"the default\"\n";
}

std::string choicesScript(const tune::Database& all, bool overFeatures) {
  std::map<std::string, std::map<double, std::pair<double, double>>> series;
  for (const Record& r : all.records)
    if (r.kind == "choice" && tune::reasonRejected(r, all.records).empty() &&
        !tune::isSuperseded(r, all.records))
      series[overFeatures ? seriesOf(r.task) + ", " + std::to_string(r.task.segments * r.task.rows) + " rows"
                          : seriesOf(r.task)][overFeatures ? double(r.task.features) : bytesOf(r.task)] = {
          rate(r, r.reference), rate(r, r.samples)};
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
                       : "set title \"Speed over the bytes of a call\"\nset xlabel \"bytes\"\n") +
         "set ylabel \"GB/s\"\nset logscale x 2\nset yrange [0:*]\nset key below vertical maxcols 1\n" +
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
  for (const plot::Picture& picture : pictures)
    for (const char* ending : {".svg", ".png"}) {
      const std::string file = folder + "/" + picture.name + ending;
      requireOwnFile({"the picture", file}, read);
      requireWritable(file);
    }
  auto files = plot::draw(pictures, folder);
  if (!files) throw refused(llvm::toString(files.takeError()));
  if (out.json)
    out.result({{"files", *files}});
  else
    for (const std::string& file : *files) out.results() << file << "\n";
  return ExitCode::Ok;
}

}  // namespace normc::cli
