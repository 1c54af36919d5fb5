// Requests to a worker, one on each line: each gets an answer, which is an error with a reason where the
// request is none. No package is opened, since a kernel is machine code.
#include "autotune/worker/WorkerRequests.h"
#include "tests/fuzz/Lines.h"
#include "tests/fuzz/Target.h"

namespace normc::fuzz {
namespace {

using tune::Json;

/// True if the request names a package. Its code would run in this process.
bool loads(const Json& request) { return request.contains("package") && request["package"] != "absent.npk"; }

}  // namespace

void requests(std::string_view input) {
  tune::WorkerRequests worker;
  for (const std::string& line : linesOf(input)) {
    if (line.size() > 4096) continue;
    const Json request = Json::parse(line, nullptr, false);
    if (!request.is_object() || loads(request)) continue;
    const Json answer = worker.answer(request);
    require(answer.is_object(), "an answer is an object");
    if (answer.contains("error"))
      require(answer["error"].is_string() && !answer["error"].get<std::string>().empty(),
              "an error has a reason");
    else
      require(answer.contains("protocol"), "without a candidate only a task is answered: " + line);
    require(answer.dump(-1, ' ', false, Json::error_handler_t::replace).find('\n') == std::string::npos,
            "an answer is one line");
  }
}

std::vector<std::string> seedsOfRequests() {
  const std::string task =
      R"({"do":"task","problem":"layer_norm:forward@f32[*x24]","spec":"norm layer_norm { reduce features }",)"
      R"("segments":1,"rows":50,"features":24,"threads":1,"policy":"warm","sample_seconds":1e-4,"scatter":1,)"
      R"("device":"cpu","patience":0,"loops":[1e-3,2e-3]})"
      "\n";
  return {task,
          task + R"({"do":"load","name":"0","package":"absent.npk"})" + "\n" + R"({"do":"gate","name":"0"})" +
              "\n",
          task + R"({"do":"sample","names":["0"],"first":0,"rounds":2})" + "\n" +
              R"({"do":"copy","reads":1,"writes":1})" + "\n",
          R"({"do":"nothing"})"
          "\n"};
}

}  // namespace normc::fuzz
