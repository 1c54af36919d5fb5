#include "autotune/tune/MakeAhead.h"

#include <utility>

#include "autotune/measure/Clock.h"

namespace normc::tune {

MakeAhead::MakeAhead(Make make, int always, int whileWaiting) : make_(std::move(make)), always_(always) {
  try {
    for (int i = 0; i < always + whileWaiting; ++i) threads_.emplace_back([=, this] { work(i < always); });
  } catch (...) {  // no more threads
    if (threads_.empty()) throw;
  }
}

MakeAhead::~MakeAhead() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void MakeAhead::announce(const std::vector<size_t>& points) {
  {
    const std::lock_guard lock(mutex_);
    queue_.assign(points.begin(), points.end());
  }
  changed_.notify_all();
}

std::optional<BuiltCandidate> MakeAhead::take(size_t point, double seconds) {
  const auto deadline = measure::deadlineIn(seconds);
  std::unique_lock lock(mutex_);
  if (!begun_.contains(point)) queue_.push_front(point);
  ++waiting_;
  changed_.notify_all();
  const bool begun = changed_.wait_until(lock, deadline, [&] { return begun_.contains(point); });
  std::shared_future<BuiltCandidate> made;
  if (begun) made = begun_.at(point);
  lock.unlock();
  const bool ready = begun && made.wait_until(deadline) == std::future_status::ready;
  lock.lock();
  --waiting_;
  return ready ? std::optional(made.get()) : std::nullopt;
}

void MakeAhead::settle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return making_ <= always_; });
}

void MakeAhead::work(bool always) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return over_ || (!queue_.empty() && (always || waiting_ > 0)); });
    if (over_) return;
    const size_t point = queue_.front();
    queue_.pop_front();
    if (begun_.contains(point)) continue;
    std::promise<BuiltCandidate> promise;
    begun_[point] = promise.get_future().share();
    ++making_;
    lock.unlock();
    changed_.notify_all();
    try {
      promise.set_value(make_(point));
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
    lock.lock();
    --making_;
    changed_.notify_all();
  }
}

}  // namespace normc::tune
