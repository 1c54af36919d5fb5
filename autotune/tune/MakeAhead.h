// Makes candidates in threads of its own, in the order in which they are expected to be needed, while others
// are judged and timed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace normc::tune {

/// A candidate as a package on disk that holds only this candidate.
struct BuiltCandidate {
  std::string package;       ///< path
  std::string object;        ///< SHA-256 of its code
  std::string failure = {};  ///< why it could not be made; if set, the rest is empty
  /// The failure is not caused by the candidate: it is not recorded, and a later run tries again.
  bool unavailable = false;
};

class MakeAhead {
 public:
  using Make = std::function<BuiltCandidate(size_t point)>;

  /// `make`: called by several threads at once. `always`: threads that work at any time.
  /// `whileWaiting`: threads that begin a candidate only while take() waits, since the measured program needs
  /// their processors.
  MakeAhead(Make make, int always, int whileWaiting);
  /// Waits for the candidates that are being made.
  ~MakeAhead();
  MakeAhead(const MakeAhead&) = delete;

  /// Announces what is needed next, in this order, in place of what was announced before.
  void announce(const std::vector<size_t>& points);
  /// Returns a candidate, made before all that was announced. Null if that takes more than `seconds`. Throws
  /// what `make` threw.
  std::optional<BuiltCandidate> take(size_t point, double seconds);
  /// Waits until no more candidates are being made than `always` threads make, so that the others leave their
  /// processors to what is timed next.
  void settle();

 private:
  void work(bool always);

  Make make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<size_t> queue_;
  std::map<size_t, std::shared_future<BuiltCandidate>> begun_;  ///< made, or being made
  int always_, making_ = 0, waiting_ = 0;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace normc::tune
