#include "tools/normc/Progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <ostream>

namespace normc::cli {
namespace {

constexpr std::chrono::milliseconds kTerminalPause{100}, kPlainPause{3000};

size_t terminalColumns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(Output& out, std::string doing, int64_t total)
    : out_(out), doing_(std::move(doing)), total_(total), terminal_(isatty(STDERR_FILENO)) {}

void Progress::clear() {
  if (terminal_ && shown_) out_.talk() << "\r\033[K" << std::flush;
  shown_ = false;
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

/// True if it is time for another line.
bool Progress::due() {
  const auto now = Clock::now();
  if (now - last_ < (terminal_ ? kTerminalPause : kPlainPause)) return false;
  last_ = now;
  return shown_ = true;
}

void Progress::put(const std::string& line) {
  if (terminal_) {
    out_.talk() << "\r\033[K" << line.substr(0, terminalColumns() - 1) << std::flush;
  } else {
    out_.talk() << line << std::endl;
  }
}

void Progress::step(int64_t done, const std::string& what) {
  if (!due()) return;
  std::string line = doing_ + " " + std::to_string(done) + " of " + std::to_string(total_);
  if (done > 0)
    line += ", about " + secondsText(std::ceil(seconds() / double(done) * double(total_ - done))) + " left";
  put(line + ": " + what);
}

void Progress::show(double fraction, const std::string& text) {
  if (!due()) return;
  std::string line = doing_ + " " + text;
  if (fraction > 0.02 && fraction < 1)
    line += ", about " + secondsText(std::ceil(seconds() / fraction * (1 - fraction))) + " left";
  put(line);
}

}  // namespace normc::cli
