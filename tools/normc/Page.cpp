#include "tools/normc/Page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace normc::cli {
namespace {

constexpr const char* kStyle =
    ":root{color-scheme:light dark;--ink:#1a1c20;--faint:#6a7078;--paper:#fff;--line:#d5d9df;--mark:#2f6fb3;"
    "--chosen:#c2410c}\n"
    "@media (prefers-color-scheme:dark){:root{--ink:#e4e7eb;--faint:#98a0aa;--paper:#15181c;--line:#363c44;"
    "--mark:#7fb4ea;--chosen:#fb923c}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;"
    "margin:2rem auto;padding:0 1rem}\n"
    "h2{margin-top:2.5rem;font-size:1.15rem;overflow-wrap:anywhere}h3{font-size:1rem}"
    "p.faint{color:var(--faint)}\n"
    "table{border-collapse:collapse;font-size:.9em}td,th{text-align:left;vertical-align:top;padding:.15rem "
    ".8rem .15rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}\n"
    "th{color:var(--faint);font-weight:normal}.number{text-align:right;font-variant-numeric:tabular-nums}\n"
    "code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}svg{width:100%;height:auto;display:block}\n"
    "svg text{font:11px system-ui,sans-serif;fill:var(--ink)}svg .axis{fill:var(--faint)}\n"
    "svg line{stroke:var(--line)}svg .one{stroke:var(--faint);stroke-dasharray:4 3}\n"
    "svg .mark{fill:var(--mark);stroke:var(--mark)}svg .chosen{fill:var(--chosen);stroke:var(--chosen)}\n"
    "svg text.chosen{stroke:none}\n";

constexpr double kWidth = 860, kHeight = 260, kLeft = 46, kRight = 12, kTop = 10, kBottom = 26;
constexpr double kRow = 20, kValues = 320;  ///< of a race: the height of a row, the width for values
constexpr double kMostShown = 3;            ///< larger ratios are drawn there

std::string number(double value, const char* form = "%.1f") {
  char text[32];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + number(value) + "\"";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& kind = "") {
  return "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) + attribute("y2", y2) +
         (kind.empty() ? "" : " class=\"" + kind + "\"") + "/>";
}

std::string label(double x, double y, const std::string& text, const std::string& anchor = "start",
                  const std::string& kind = "") {
  return "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + anchor + "\"" +
         (kind.empty() ? "" : " class=\"" + kind + "\"") + ">" + escaped(text) + "</text>";
}

std::string dot(double x, double y, const Mark& mark) {
  return "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", mark.chosen ? 4.5 : 2.5) +
         " class=\"" + (mark.chosen ? "chosen" : "mark") + "\"><title>" + escaped(mark.text) + ": " +
         number(mark.value, "%.3f") + "</title></circle>";
}

std::string svg(double width, double height, const std::string& what, const std::string& content) {
  return "<svg viewBox=\"0 0 " + number(width, "%.0f") + " " + number(height, "%.0f") +
         "\" role=\"img\" aria-label=\"" + escaped(what) + "\">" + content + "</svg>\n";
}

/// The range of an axis of ratios, and its steps.
struct Scale {
  double low, high, step, from, to;

  Scale(const std::vector<Mark>& marks, double from, double to) : low(1), high(1), from(from), to(to) {
    for (const Mark& mark : marks) {
      low = std::min(low, mark.low);
      high = std::max(high, std::min(mark.high, kMostShown));
    }
    const double wide = std::max(high - low, 0.02);
    step = wide > 1.2 ? 0.5 : wide > 0.5 ? 0.2 : wide > 0.2 ? 0.1 : wide > 0.08 ? 0.05 : 0.01;
    low = std::floor(low / step - 1e-9) * step;
    high = std::ceil(high / step + 1e-9) * step;
  }
  double place(double value) const {
    return from + (std::clamp(value, low, high) - low) / (high - low) * (to - from);
  }
  std::vector<double> ticks() const {
    std::vector<double> all;
    for (int i = 0; low + i * step <= high + step / 2; ++i) all.push_back(low + i * step);
    return all;
  }
};

}  // namespace

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += (c >= 0 && c < ' ' && c != '\n') ? ' ' : c;
    }
  return safe;
}

std::string page(const std::string& title, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escaped(title) + "</title>\n<style>\n" + kStyle + "</style>\n</head>\n<body>\n" + body +
         "</body>\n</html>\n";
}

std::string element(const std::string& name, const std::string& content, const std::string& attributes) {
  return "<" + name + (attributes.empty() ? "" : " " + attributes) + ">" + content + "</" + name + ">\n";
}

std::string tableOf(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string cells;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool heading = &row == &rows[0], right = rows[0][i].starts_with(">");
      const std::string name = heading ? "th" : "td";
      cells += "<" + name + (right ? " class=\"number\">" : ">") +
               escaped(heading && right ? row[i].substr(1) : row[i]) + "</" + name + ">";
    }
    text += "<tr>" + cells + "</tr>\n";
  }
  return element("table", "\n" + text);
}

std::string landscapePicture(const std::vector<Mark>& marks) {
  const Scale scale(marks, kHeight - kBottom, kTop);
  const double wide = kWidth - kLeft - kRight;
  std::string content;
  for (const double tick : scale.ticks())
    content += line(kLeft, scale.place(tick), kWidth - kRight, scale.place(tick)) +
               label(kLeft - 6, scale.place(tick) + 4, number(tick, "%.2f"), "end", "axis");
  content += line(kLeft, scale.place(1), kWidth - kRight, scale.place(1), "one");
  std::string chosen;
  for (size_t i = 0; i < marks.size(); ++i) {
    const double x = kLeft + wide * (double(i) + 0.5) / double(marks.size());
    (marks[i].chosen ? chosen : content) += dot(x, scale.place(marks[i].value), marks[i]);
  }
  content +=
      chosen + label(kLeft + wide / 2, kHeight - 6,
                     std::to_string(marks.size()) + " candidates, the fastest first", "middle", "axis");
  return svg(kWidth, kHeight, "time of each candidate, of the default", content);
}

std::string racePicture(const std::vector<Mark>& marks) {
  const Scale scale(marks, kLeft, kLeft + kValues);
  const double height = kTop + kRow * double(marks.size()) + kBottom;
  std::string content;
  for (const double tick : scale.ticks())
    content += line(scale.place(tick), kTop, scale.place(tick), height - kBottom) +
               label(scale.place(tick), height - 8, number(tick, "%.2f"), "middle", "axis");
  content += line(scale.place(1), kTop, scale.place(1), height - kBottom, "one");
  for (size_t i = 0; i < marks.size(); ++i) {
    const Mark& mark = marks[i];
    const double y = kTop + kRow * (double(i) + 0.5);
    content += line(scale.place(mark.low), y, scale.place(mark.high), y, mark.chosen ? "chosen" : "mark") +
               dot(scale.place(mark.value), y, mark) +
               label(kLeft + kValues + 16, y + 4, mark.text, "start", mark.chosen ? "chosen" : "");
  }
  return svg(kWidth, height, "the race: time of each schedule, of the default", content);
}

}  // namespace normc::cli
