// Ctrl-C that a loop polls, so that finished work can be kept.
//
// While one of these lives, SIGINT and SIGTERM stay pending and do not end the program. Threads that are
// started meanwhile inherit that. It has no handler and no global.
#pragma once

#include <csignal>
#include <ctime>

namespace normc::tune {

class Interrupt {
 public:
  Interrupt() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  /// Discards signals that arrived meanwhile; the loop has handled them.
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

}  // namespace normc::tune
