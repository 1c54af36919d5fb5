// The requests to a worker and its answers: their text, and what is refused when they are read.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "autotune/worker/Protocol.h"

namespace normc::tune::test {
namespace {

/// Checks the text of a request, and that it is read as it was written.
template <typename Request>
void expectText(const Request& request, const std::string& text) {
  EXPECT_EQ(request.json().dump(), text);
  EXPECT_EQ(Request::from(Json::parse(text)).json().dump(), text);
}

TEST(Protocol, RequestsHaveTheirText) {
  TaskRequest task{.problem = "p", .spec = "s", .rows = 50, .features = 24, .threads = 2, .policy = "warm"};
  task.sampleSeconds = 0.5;
  task.scatter = 1;
  const std::string device = R"({"cuda_library":"libcuda.so.1","device":"cpu","do":"task","features":24,)"
                             R"("index":0,)";
  const std::string rest = R"("patience":0.0,"policy":"warm","problem":"p","rows":50,"sample_seconds":0.5,)"
                           R"("scatter":1,"segments":1,"spec":"s","threads":2})";
  expectText(task, device + rest);
  task.loops = measure::Loops{.waiting = 0.25, .filling = 0.5};
  expectText(task, device + R"("loops":[0.25,0.5],)" + rest);
  expectText(LoadRequest{"0", "a.npk"}, R"({"do":"load","name":"0","package":"a.npk"})");
  expectText(GateRequest{"0", GatePart::First}, R"({"do":"gate","name":"0","part":"first"})");
  expectText(GateRequest{"0", GatePart::Rest}, R"({"do":"gate","name":"0","part":"rest"})");
  expectText(GateRequest{"0", GatePart::All}, R"({"do":"gate","name":"0","part":"all"})");
  expectText(SampleRequest{.names = {"0", "1"}, .first = 3, .rounds = 2},
             R"({"do":"sample","first":3,"names":["0","1"],"rounds":2})");
  expectText(SampleRequest{.names = {"0"}, .rounds = 2, .patience = 1, .seconds = 4},
             R"({"do":"sample","first":0,"names":["0"],"patience":1.0,"rounds":2,"seconds":4.0})");
  expectText(CopyRequest{.traffic = {.reads = 2, .writes = 1}, .seconds = 60},
             R"({"do":"copy","reads":2,"seconds":60.0,"writes":1})");
}

TEST(Protocol, AnswersHaveTheirText) {
  EXPECT_EQ(taskAnswer().dump(), R"({"protocol":1})");
  expectText(GateAnswer{3, 0.5, "y[3] is nan"}, R"({"failure":"y[3] is nan","trials":3,"worst":0.5})");
  expectText(CopyAnswer{0.25}, R"({"seconds":0.25})");
  expectText(ErrorAnswer{"no"}, R"({"error":"no"})");
  expectText(ErrorAnswer{"no", true}, R"({"error":"no","may_pass":true})");
  EXPECT_EQ(ErrorAnswer::from(Json::object()).error, "");
}

TEST(Protocol, SamplesAreThoseThatWereAskedFor) {
  const auto read = [](const std::string& samples, const SampleRequest& request) {
    const Json json = Json::parse(R"({"accepted":0,"disturbed":1,"loops":[0.25,0.5],"patience":0.5,)"
                                  R"("samples":)" +
                                  samples + "}");
    EXPECT_EQ(SampleAnswer::from(json, request).json(), json);
  };
  const SampleRequest two{.names = {"0", "1"}, .rounds = 2, .patience = 1};
  EXPECT_NO_THROW(read("[[1.0,2.0],[3.0,4.0]]", two));
  EXPECT_THROW(read("[[1.0,2.0]]", two), std::length_error);
  EXPECT_THROW(read("[[1.0],[3.0]]", two), std::length_error) << "no time ended them early";
  EXPECT_THROW(read("[[1.0,2.0],[3.0]]", two), std::length_error);
  EXPECT_THROW(read("[[1.0,2.0],[3.0,0.0]]", two), ImpossibleNumber);
  EXPECT_THROW(read("[[1.0,2.0],[3.0,\"4\"]]", two), Json::exception);
  const SampleRequest brief{.names = {"0", "1"}, .rounds = 2, .patience = 1, .seconds = 1};
  EXPECT_NO_THROW(read("[[1.0],[3.0]]", brief));
  const SampleRequest impatient{.names = {"0", "1"}, .rounds = 2, .patience = 0.25};
  EXPECT_THROW(read("[[1.0,2.0],[3.0,4.0]]", impatient), ImpossibleNumber) << "no wait gives time back";
}

}  // namespace
}  // namespace normc::tune::test
