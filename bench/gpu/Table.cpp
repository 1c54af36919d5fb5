#include "bench/gpu/Table.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/kit/Text.h"

namespace normc::gpu {
namespace {

using bench::format;

std::vector<Json> ofKind(const std::vector<Json>& records, const std::string& kind) {
  std::vector<Json> result;
  for (const Json& record : records)
    if (record.value("kind", "") == kind) result.push_back(record);
  return result;
}

std::string facts(const std::vector<Json>& records) {
  const auto all = ofKind(records, "facts");
  if (all.empty()) return "The device's facts are missing.\n";
  const Json& f = all.back();
  const int driver = f.value("cuda_version_of_driver", 0);
  return format("%s, %s, %d multiprocessors, L2 %.0f MiB, memory %.0f GiB\n\n",
                f.value("device", "?").c_str(), f.value("arch", "?").c_str(), f.value("multiprocessors", 0),
                f.value("l2_bytes", 0.0) / (1 << 20), f.value("memory_bytes", 0.0) / (1 << 30)) +
         format("Driver for CUDA %d.%d; %s; normc %s; %s\n", driver / 1000, driver % 1000 / 10,
                f.value("driver", "").c_str(), f.value("normc", "?").c_str(), f.value("date", "?").c_str());
}

std::string roofs(const std::vector<Json>& records) {
  const auto all = ofKind(records, "roof");
  std::string text = "\n## Roofs\n\n";
  if (all.empty()) return text + "Not measured.\n";
  text += "| kernel | one tensor | us | GB/s |\n|---|---|---|---|\n";
  for (const Json& r : all)
    text += format("| %s | %.0f MiB | %.2f | %.0f |\n", r.at("roof").get<std::string>().c_str(),
                   r.at("tensor_bytes").get<double>() / (1 << 20), r.at("us").at("median").get<double>(),
                   r.at("gbps").get<double>());
  return text;
}

std::string tests(const std::vector<Json>& records) {
  const auto all = ofKind(records, "tests");
  std::string text = "\n## Tests\n\n";
  if (all.empty()) return text + "Not run.\n";
  const Json& t = all.back();
  text += format(
      "%lld kernels, %lld trials: %lld trials of %lld kernels failed%s. Largest error over its bound among "
      "those that passed: %.2f.\n",
      t.value("kernels", 0LL), t.value("trials", 0LL), t.value("trials_failed", 0LL),
      t.value("kernels_wrong", 0LL), t.value("finished", false) ? "" : "; not all were tried",
      t.value("worst_ratio", 0.0));
  size_t shown = 0;
  for (const Json& failure : t.value("failures", Json::array())) {
    if (++shown > 20) break;
    text += "\n    " + failure.get<std::string>();
  }
  return text + (shown ? "\n" : "");
}

/// Microseconds of everybody else on the same shape, whose scale and bias are of bf16: the text of a cell.
std::string othersOn(const std::string& shape, const std::vector<Json>& peers) {
  std::string text;
  for (const Json& peer : peers)
    if (peer.value("shape", "") == shape.substr(0, shape.find('{')) && peer.contains("us"))
      text += format("%s%s %.2f", text.empty() ? "" : ", ", peer.value("who", "?").c_str(),
                     peer.at("us").at("median").get<double>());
  return text.empty() ? "-" : text;
}

/// Returns the text of a cell: the gain of tuning on a shape.
std::string tunedOn(const Json& r) {
  if (!r.contains("tuned")) return "-";
  const Json& t = r.at("tuned");
  if (t.contains("wrong")) return "WRONG";
  if (!t.contains("us")) return "the default";
  return format("%.2f (%.2fx)", t.at("us").at("median").get<double>(),
                t.at("default_over_tuned").at("value").get<double>());
}

std::string row(const Json& r, const std::vector<Json>& peers) {
  const std::string shape = r.at("shape"), others = othersOn(shape, peers);
  if (!r.contains("us")) {
    const std::string why = r.value("wrong", r.value("error", "not measured"));
    return "| " + shape + " | - | - | - | - | - | " + others + " |\n" + "| | " + why.substr(0, 200) +
           " | | | | | |\n";
  }
  const Json &us = r.at("us"), &of = r.at("of_roof");
  return format("| %s%s | %.2f [%.2f, %.2f] | %.0f | %.1f [%.1f, %.1f] | %.2f | %s | %s |\n", shape.c_str(),
                r.contains("wrong") ? " WRONG" : "", us.at("median").get<double>(),
                us.at("low").get<double>(), us.at("high").get<double>(), r.at("gbps").get<double>(),
                100 * of.at("value").get<double>(), 100 * of.at("low").get<double>(),
                100 * of.at("high").get<double>(), r.at("roof_time_over_ours").at("value").get<double>(),
                tunedOn(r).c_str(), others.c_str());
}

std::string summary(const std::vector<Json>& rows) {
  std::map<std::string, std::vector<double>> groups;
  for (const Json& r : rows)
    if (r.contains("of_roof") && !r.contains("wrong"))
      groups[r.at("norm").get<std::string>() + " " + r.at("entry").get<std::string>() + " " +
             r.at("dtype").get<std::string>() + (r.contains("params") ? ", params too" : "")]
          .push_back(r.at("of_roof").at("value"));
  if (groups.empty()) return "";
  std::string text =
      "| family | shapes | geometric mean, % of roof | least | most |\n|---|---|---|---|---|\n";
  for (const auto& [name, values] : groups) {
    double logs = 0;
    for (const double value : values) logs += std::log(value);
    const auto [least, most] = std::ranges::minmax(values);
    text += format("| %s | %zu | %.1f | %.1f | %.1f |\n", name.c_str(), values.size(),
                   100 * std::exp(logs / double(values.size())), 100 * least, 100 * most);
  }
  return text + "\n";
}

std::string benches(const std::vector<Json>& records) {
  std::vector<Json> rows = ofKind(records, "bench");
  std::string text = "\n## Kernel times\n\n";
  const auto mine = [](const Json& r) { return r.value("who", "") == "normc"; };
  std::vector<Json> ours, peers;
  std::map<std::string, size_t> last;  // a shape that was measured again counts once
  for (size_t i = 0; i < rows.size(); ++i)
    if (mine(rows[i])) last[rows[i].value("shape", "")] = i;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!mine(rows[i])) peers.push_back(rows[i]);
    if (mine(rows[i]) && last.at(rows[i].value("shape", "")) == i) ours.push_back(rows[i]);
  }
  if (ours.empty()) return text + "Not measured.\n";
  text +=
      "Medians with 95 % intervals. GB/s are the bytes that the kernel's plan moves. % of roof: what a copy "
      "(forward)\n"
      "or triad (backward) of the same tensors would take for these bytes, over what the kernel took. "
      "roof/ours: time of\n"
      "that copy or triad over the kernel's: 1.00 is as fast as reading each input and writing each output "
      "once; of a norm of a residual stream, whose calls move four tensors, 0.50 forward and 0.75 backward. "
      "tuned: the kernel that tuning chose for this size, and how many times as fast as the default it "
      "is.\n\n";
  text += summary(ours);
  text +=
      "| problem | us | GB/s | % of roof | roof/ours | tuned, us | others, us "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const Json& r : ours) text += row(r, peers);
  return text;
}

std::string host(const std::vector<Json>& records) {
  std::string text = "\n## Host\n\n";
  const auto enqueue = ofKind(records, "enqueue"), graphs = ofKind(records, "graph");
  if (enqueue.empty()) text += "The cost of enqueueing was not measured.\n";
  if (!enqueue.empty()) text += "| normc_execute | phases | threads | us a call |\n|---|---|---|---|\n";
  for (const Json& r : enqueue) {
    text += format("| %s | %d | %d | ", r.at("shape").get<std::string>().c_str(), r.value("phases", 0),
                   r.at("threads").get<int>());
    text += r.contains("us") ? format("%.2f |\n", r.at("us").at("median").get<double>())
                             : r.value("error", "?") + " |\n";
  }
  for (const Json& r : graphs)
    text += format("\nA graph of %d calls of %d plans: ", r.value("calls", 0), r.value("plans", 0)) +
            (r.contains("error")       ? r.value("error", "")
             : r.value("equal", false) ? "the same bits as call by call."
                                       : "differs from call by call in " + r.value("differs", "?")) +
            "\n";
  return text;
}

std::string remarks(const std::vector<Json>& records) {
  std::map<std::string, std::string> last;
  for (const Json& r : records)
    if (r.value("kind", "") == "peer") last[r.value("who", "?")] = r.value("version", r.value("error", "?"));
  std::string text;
  for (const auto& [who, version] : last) text += "\n" + who + ": " + version + "\n";
  return text.empty() ? "" : "\n## Others\n" + text;
}

}  // namespace

std::string tableOf(const std::vector<Json>& records) {
  return "# normc on a GPU\n\n" + facts(records) + roofs(records) + tests(records) + benches(records) +
         host(records) + remarks(records);
}

}  // namespace normc::gpu
