// A worker process, seen from outside: requests go in, answers or its end come out.
//
// It is a program of its own in a process group of its own, with its standard input
// and output as pipes and its standard error kept as its log. It ends with us, and with
// the first request that takes too long.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>

namespace normc::tune {

using Json = nlohmann::json;

/// Of the requests and answers in Bench.h, as the answer to a task says it.
inline constexpr int kProtocol = 1;

class Worker {
 public:
  /// The end of a worker, in words: "ended by signal 11 (Segmentation fault)". `hung`: by us, after too long.
  struct Ended {
    std::string how, log;
    bool hung = false;
    bool unseen = false;  ///< nothing was seen of its end, or that it ever began
  };

  /// Starts `program`. Throws std::runtime_error where the system has no room for a process.
  explicit Worker(const std::string& program);
  ~Worker();
  Worker(const Worker&) = delete;

  /// The answer, within `seconds`; throws Ended otherwise, and then the worker is gone. Throws
  /// std::runtime_error where there never was one: `program` is missing, or a library of it, or it is another
  /// program. No candidate is to blame for that.
  Json ask(const Json& request, double seconds);
  bool alive() const { return process_ > 0; }
  pid_t process() const { return process_; }

  /// normc-worker beside this program; throws std::runtime_error with what to do where it is not there.
  static std::string besideThis();

 private:
  Ended end(bool hung);
  /// Ends it and throws what became of it; `printed`: instead of an answer.
  [[noreturn]] void giveUp(bool hung, const std::string& printed = "");

  pid_t process_ = -1;
  int to_ = -1, from_ = -1, log_ = -1;
  std::string program_, received_;
  bool answered_ = false;
};

}  // namespace normc::tune
