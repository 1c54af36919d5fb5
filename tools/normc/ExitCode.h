// How a verb ended, for scripts. The one table; `normc --help` prints it.
#pragma once

namespace normc::cli {

enum class ExitCode {
  Ok = 0,
  CheckFailed = 1,  ///< a kernel disagrees with the reference
  Usage = 2,        ///< the command line is wrong: verb, flag, value, norm or problem
  Refused = 3,      ///< a file that is damaged, wrong or cannot be written; something not supported here
  Interrupted = 4,  ///< Ctrl-C, or a total time is over: what was finished until then is kept and said
};

inline constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 a check failed; 2 wrong command line; 3 a file that is damaged, wrong or cannot "
    "be\n"
    "written, or something not supported here; 4 interrupted, with what was finished until then.";

}  // namespace normc::cli
