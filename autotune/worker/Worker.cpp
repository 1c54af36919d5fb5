#include "autotune/worker/Worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "autotune/measure/Clock.h"
#include "autotune/records/ParseJson.h"

namespace normc::tune {
namespace {

constexpr size_t kLogShown = 2000, kLineShown = 200;
/// The system's loader also exits with this number if a library is missing.
constexpr int kNotStarted = 127;

void closeAll(std::initializer_list<int*> files) {
  for (int* file : files) {
    if (*file >= 0) close(*file);
    *file = -1;
  }
}

/// Returns the beginning of a line, with unprintable characters replaced.
std::string quoted(const std::string& line) {
  std::string text = line.substr(0, kLineShown);
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return "'" + text + (line.size() > kLineShown ? "..." : "") + "'";
}

/// Returns the line of a request. Throws std::runtime_error for bytes that JSON cannot hold, e.g. in the path
/// of a package or a driver.
std::string lineOf(const Json& request) {
  for (const auto& [key, value] : request.items()) try {
      (void)value.dump();
    } catch (const Json::type_error&) {
      throw std::runtime_error("normc-worker cannot be told the path " +
                               value.dump(-1, ' ', false, Json::error_handler_t::replace) + " ('" + key +
                               "'), which is not UTF-8; use another");
    }
  return request.dump() + "\n";
}

/// Moves a descriptor above 2. If the host has closed a standard stream, a pipe may get its number; become()
/// would replace it, and the host's output would go into the pipe.
bool moveUp(int& file) {
  if (file > 2) return true;
  const int moved = fcntl(file, F_DUPFD_CLOEXEC, 3);
  if (moved < 0) return false;
  close(file);
  file = moved;
  return true;
}

/// Runs between fork and exec, so it uses only async-signal-safe functions.
[[noreturn]] void become(const char* program, int in, int out, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNotStarted);
  setpgid(0, 0);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  sigset_t signals;
  sigemptyset(&signals);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(log, 2) < 0) _exit(kNotStarted);
  // Closes all other descriptors of the host; old systems do not support it.
  syscall(SYS_close_range, 3u, ~0u, 0u);
  execl(program, program, static_cast<char*>(nullptr));
  const char* why = strerrordesc_np(errno);
  (void)!write(2, why, strlen(why));
  _exit(kNotStarted);
}

}  // namespace

std::string Worker::besideThis() {
  std::error_code error;
  const std::string program =
      std::filesystem::canonical("/proc/self/exe", error).replace_filename("normc-worker");
  if (access(program.c_str(), X_OK) != 0)
    throw std::runtime_error("kernels are measured by normc-worker, which is not beside this program: " +
                             program + ": " + std::strerror(errno));
  return program;
}

Worker::Worker(const std::string& program) : program_(program) {
  int in[2] = {-1, -1}, out[2] = {-1, -1};
  log_ = memfd_create("normc-worker-log", MFD_CLOEXEC);
  if (log_ < 0 || pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || !moveUp(log_) ||
      !moveUp(in[0]) || !moveUp(in[1]) || !moveUp(out[0]) || !moveUp(out[1])) {
    const std::string why = std::strerror(errno);
    closeAll({&in[0], &in[1], &out[0], &out[1], &log_});
    throw std::runtime_error("cannot start a worker: " + why);
  }
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) become(program.c_str(), in[0], out[1], log_, parent);
  const std::string why = std::strerror(errno);
  closeAll({&in[0], &out[1]});
  to_ = in[1];
  from_ = out[0];
  if (process_ > 0) return;
  closeAll({&to_, &from_, &log_});
  throw std::runtime_error("cannot start a worker: " + why);
}

Worker::~Worker() {
  if (alive()) end(false);
}

Worker::Ended Worker::end(bool hung) {
  Ended ended;
  ended.hung = hung;
  int status = 0;
  closeAll({&to_, &from_});
  // A worker that is exiting gets time to do so, so that its own end is reported; one that waits or hangs is
  // killed.
  pid_t done = 0;
  for (int wait = 0; wait < 200 && !hung && (done = waitpid(process_, &status, WNOHANG)) == 0; ++wait)
    usleep(5000);
  kill(-process_, SIGKILL);
  if (done == 0) kill(process_, SIGKILL);
  while (done == 0 || (done < 0 && errno == EINTR)) done = waitpid(process_, &status, 0);
  process_ = -1;
  ended.unseen = done < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted);
  if (hung)
    ended.how = "did not answer in time and was ended";
  else if (done < 0)
    ended.how =
        "ended with an exit code that is not known, since this process ignores SIGCHLD or waits for every "
        "child";
  else if (WIFSIGNALED(status))
    ended.how =
        "ended by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  else
    ended.how = "ended with exit code " + std::to_string(WEXITSTATUS(status));
  ended.log.resize(kLogShown);
  ended.log.resize(size_t(std::max<ssize_t>(0, pread(log_, ended.log.data(), kLogShown, 0))));
  while (ended.log.ends_with('\n')) ended.log.pop_back();
  closeAll({&log_});
  return ended;
}

void Worker::giveUp(bool hung, const std::string& printed) {
  Ended ended = end(hung || !printed.empty());
  if (!printed.empty() && !answered_)
    throw std::runtime_error(program_ +
                             " is no normc-worker, or that of another version of normc: it answered " +
                             quoted(printed));
  if (!answered_ && !hung && ended.unseen)
    throw std::runtime_error("cannot start the worker " + program_ + ": " +
                             (ended.log.empty() ? ended.how : ended.log));
  if (!printed.empty()) {
    ended.hung = false;
    ended.how = "answered " + quoted(printed) +
                ", which is no JSON object: a kernel may have printed it; so it was ended";
  }
  throw ended;
}

Json Worker::ask(const Json& request, double seconds) {
  const auto deadline = measure::deadlineIn(seconds);
  const std::string line = lineOf(request);
  for (size_t sent = 0; sent < line.size();) {  // avoids SIGPIPE: the worker may have ended
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    const ssize_t written = write(to_, line.data() + sent, line.size() - sent);
    const int error = errno;
    const timespec now{};
    if (written < 0 && error == EPIPE) sigtimedwait(&pipe, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (written < 0 && error == EINTR) continue;
    if (written < 0) giveUp(false);
    sent += size_t(written);
  }
  for (;;) {
    if (const size_t newline = received_.find('\n'); newline != received_.npos) {
      const std::string line = received_.substr(0, newline);
      const Json answer = parseJson(line);
      received_.erase(0, newline + 1);
      if (answer.is_object()) {
        answered_ = true;
        return answer;
      }
      giveUp(false, line.empty() ? "an empty line" : line);
    }
    const double left = std::chrono::duration<double>(deadline - measure::Clock::now()).count();
    pollfd file{from_, POLLIN, 0};
    const int ready = left > 0 ? poll(&file, 1, int(std::min(left * 1000 + 1, 1e9))) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) giveUp(true);
    char piece[1 << 16];
    const ssize_t count = read(from_, piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) giveUp(false);
    received_.append(piece, size_t(count));
  }
}

}  // namespace normc::tune
