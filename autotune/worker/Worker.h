// A worker process, controlled by its parent: sends requests (Protocol.h), receives answers or its end.
//
// The worker is a separate program in its own process group. Its standard input and output are pipes, and its
// standard error is kept as its log. It ends with this process, or if a request exceeds its time limit.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>

namespace normc::tune {

using Json = nlohmann::json;

class Worker {
 public:
  /// Thrown at the end of a worker, with a description: "ended by signal 11 (Segmentation fault)". `hung`: it
  /// was killed after its time limit.
  struct Ended {
    std::string how, log;
    bool hung = false;
    bool unseen = false;  ///< neither its end nor its start was observed
  };

  /// Starts `program`. Throws std::runtime_error if the system cannot create a process.
  explicit Worker(const std::string& program);
  ~Worker();
  Worker(const Worker&) = delete;

  /// Returns the answer if it arrives within `seconds`. Throws Ended otherwise; the worker is then gone.
  /// Throws std::runtime_error if no worker ever started: `program` or a library of it is missing, or it is
  /// another program. No candidate causes that.
  Json ask(const Json& request, double seconds);
  bool alive() const { return process_ > 0; }
  pid_t process() const { return process_; }

  /// Returns the path of normc-worker in the folder of this program. Throws std::runtime_error with advice if
  /// it is not there.
  static std::string besideThis();

 private:
  Ended end(bool hung);
  /// Ends the worker and throws the reason. `printed`: what it printed instead of an answer.
  [[noreturn]] void giveUp(bool hung, const std::string& printed = "");

  pid_t process_ = -1;
  int to_ = -1, from_ = -1, log_ = -1;
  std::string program_, received_;
  bool answered_ = false;
};

}  // namespace normc::tune
