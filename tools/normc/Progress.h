// How far long work is, on the standard error: on a terminal one line that is
// rewritten, elsewhere a plain line every few seconds. Short work says nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tools/normc/Output.h"

namespace normc::cli {

class Progress {
 public:
  /// `doing` as in "compiling". One thread at a time may call step().
  Progress(Output&, std::string doing, int64_t total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of the total are finished; `what` is at hand.
  void step(int64_t done, const std::string& what);
  /// `fraction` of the work is done; `text` says how it stands.
  void show(double fraction, const std::string& text);
  /// Takes the line away; so does the end.
  void clear();

 private:
  double seconds() const;
  bool due();
  void put(const std::string& line);

  using Clock = std::chrono::steady_clock;

  Output& out_;
  std::string doing_;
  int64_t total_;
  bool terminal_, shown_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace normc::cli
