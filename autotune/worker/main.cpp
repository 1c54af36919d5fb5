// normc-worker: judges and times kernels for `normc tune`, which starts it and communicates over pipes. It
// ends at the end of its input.
#include <cstdio>
#include <iostream>
#include <string>

#include "autotune/worker/StandardFiles.h"
#include "autotune/worker/WorkerRequests.h"

int main(int argc, char**) {
  normc::tune::reserveStandardFiles();
  if (argc > 1) {
    std::fputs(
        "normc-worker takes no arguments: normc tune, normc-bundle and libnormc_tuner start it, and send it\n"
        "requests, a JSON object on each line of its standard input.\n",
        stderr);
    return 2;
  }
  normc::tune::WorkerRequests requests;
  for (std::string line; std::getline(std::cin, line);) {
    const normc::tune::Json request = normc::tune::Json::parse(line, nullptr, false);
    const auto answer = request.is_object()
                            ? requests.answer(request)
                            : normc::tune::ErrorAnswer{"a request is a JSON object on one line"}.json();
    std::cout << answer.dump(-1, ' ', false, normc::tune::Json::error_handler_t::replace) << std::endl;
  }
  return 0;
}
