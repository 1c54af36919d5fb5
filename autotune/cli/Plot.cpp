#include "autotune/cli/Plot.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>

#include "autotune/cli/Failure.h"
#include "autotune/cli/Files.h"
#include "autotune/cli/TemporaryFolder.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Program.h"

namespace normc::cli {
namespace {

namespace fs = std::filesystem;
using tune::Record;

/// Text for gnuplot, which would read some signs as commands.
std::string plain(std::string text) {
  std::erase_if(text,
                [](unsigned char c) { return c == '"' || c == '\\' || c == '$' || c == '`' || c < ' '; });
  return text;
}

/// Bytes that a call has to move: its X-sized tensors, once each.
double bytesOf(const tune::Task& task) {
  const bool backward = task.problem.find(":backward@") != std::string::npos;
  const bool half = task.problem.find("f16[") != std::string::npos,
             wide = task.problem.find("@f64[") != std::string::npos;
  return (backward ? 3.0 : 2.0) *
         (half   ? 2.0
          : wide ? 8.0
                 : 4.0) *
         double(task.segments) * double(task.rows) * double(task.features);
}

double rate(const Record& choice, const tune::Samples& samples) {
  return samples.empty() ? 0 : bytesOf(choice.task) / measure::median(samples) * 1e-9;
}

/// What lines of one picture have in common: all but the features.
std::string seriesOf(const tune::Task& task) {
  return task.problem.substr(0, task.problem.find('[')) + ", " + task.policy;
}

std::string block(const std::string& name, const std::string& rows) {
  return "$" + name + " << EOD\n" + rows + "EOD\n";
}

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
    if (r.kind == "choice")
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

/// Runs gnuplot on a script; what it said where it failed.
void draw(const std::string& gnuplot, const std::string& script) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/plot.gp", log = folder.path() + "/log";
  writeFile(file, script);
  const llvm::SmallVector<llvm::StringRef> command{gnuplot, file};
  const std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), llvm::StringRef(log),
                                                      llvm::StringRef(log)};
  std::string error;
  if (llvm::sys::ExecuteAndWait(gnuplot, command, std::nullopt, redirects, 60, 0, &error) != 0)
    throw refused("gnuplot could not draw: " + error + readFile(log));
}

}  // namespace

std::string plotScript(const tune::Database& all, const std::string& picture) {
  return picture == "landscape" ? landscapeScript(all) : choicesScript(all, picture == "features");
}

ExitCode plotRecords(const tune::Database& all, const std::string& given, Output& out) {
  const auto gnuplot = llvm::sys::findProgramByName("gnuplot");
  if (!gnuplot)
    throw refused("pictures are drawn by gnuplot, which is not on the PATH",
                  "on Debian: apt-get install gnuplot-nox");
  const std::string folder = given.empty() ? "." : given;
  std::error_code none;
  fs::create_directories(folder, none);
  Json files = Json::array();
  for (const std::string picture : {"landscape", "features", "roofline"}) {
    const std::string script = plotScript(all, picture);
    if (script.empty()) continue;
    std::string commands;
    for (const auto& [ending, terminal] : {std::pair("svg", "svg noenhanced size 1000,700 dynamic"),
                                           std::pair("png", "png noenhanced size 1000,700")}) {
      const std::string file = folder + "/" + picture + "." + ending;
      requireWritable(file);
      commands += std::string(commands.empty() ? script.substr(0, script.find("set title")) : "") +
                  "set terminal " + terminal + "\nset output \"" + plain(file) + "\"\n" +
                  script.substr(script.find("set title")) + "unset output\n";
      files.push_back(file);
    }
    draw(*gnuplot, commands);
  }
  if (files.empty())
    throw refused("the records hold nothing to draw", "normc tune NORM --records FILE makes some");
  if (out.json)
    out.result({{"files", files}});
  else
    for (const Json& file : files) out.results() << file.get<std::string>() << "\n";
  return ExitCode::Ok;
}

}  // namespace normc::cli
