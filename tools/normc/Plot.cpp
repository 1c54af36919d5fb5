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

double elementsOf(const tune::Task& task) { return double(task.totalRows()) * double(task.features); }

/// Billions of elements of x in a second. What a norm reads and writes beside x is not recorded.
double rate(const Record& choice, const tune::Samples& samples) {
  return samples.empty() ? 0 : elementsOf(choice.task) / measure::median(samples) * 1e-9;
}

/// The properties that the lines of one picture share: all but the features.
std::string seriesOf(const tune::Task& task) { return task.problem.head() + ", " + task.policy; }

std::string landscapeScript(const tune::Database& all) {
  std::map<std::string, std::vector<double>> ratios;
  for (const Record& r : all.records)
    if (r.kind == tune::RecordKind::Trial && r.status == tune::Status::Ok && r.stage == "screen" &&
        !r.samples.empty())
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
  const tune::Standing standing(all.records);
  std::map<std::string, std::map<double, std::pair<double, double>>> series;
  for (const Record& r : all.records)
    if (r.kind == tune::RecordKind::Choice && standing.reasonRejected(r).empty() && !standing.isSuperseded(r))
      series[overFeatures ? seriesOf(r.task) + ", " + std::to_string(r.task.totalRows()) + " rows"
                          : seriesOf(r.task)]
            [overFeatures ? double(r.task.features) : bytes(r.task.problem.data) * elementsOf(r.task)] = {
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
