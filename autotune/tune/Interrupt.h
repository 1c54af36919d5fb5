// Ctrl-C as a question that a loop asks, so that finished work can be kept.
//
// While one of these lives, SIGINT and SIGTERM wait instead of ending the program.
// Threads started meanwhile inherit that. No handler, no global.
#pragma once

#include <csignal>
#include <ctime>

namespace normc::cli {

class Interrupt {
 public:
  Interrupt() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  /// A request that came meanwhile has been answered: it is taken away.
  ~Interrupt() {
    const timespec now{};
    while (sigtimedwait(&signals_, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
  }

 private:
  sigset_t signals_, before_;
};

}  // namespace normc::cli
