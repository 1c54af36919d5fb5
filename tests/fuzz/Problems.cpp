// Problems: the grammar that every folder reads, and the language's reader that binds them to a norm.
#include "dsl/Library.h"
#include "dsl/Problem.h"
#include "dsl/StateFields.h"
#include "runtime/abi/ProblemText.h"
#include "runtime/normc.hpp"
#include "tests/fuzz/Target.h"
#include "tests/runtime/TestPackage.h"

namespace normc::fuzz {
namespace {

void checkErrors(const std::vector<Diagnostic>& errors, std::string_view text) {
  require(!errors.empty(), "a text that is no problem has an error");
  for (const Diagnostic& error : errors) {
    require(!error.message.empty(), "an error says what is wrong");
    require(error.where.column >= 0 && error.where.column <= int(text.size()) + 1,
            "an error is at a column of the text");
    require(error.text().find("error: ") != std::string::npos, "an error prints as one");
  }
}

void checkGrammar(std::string_view text) {
  std::string why;
  const auto read = parseProblemText(text, &why);
  require(bool(read) == why.empty(), "a text is a problem, or there is a reason why not");
  if (!read) return;
  const std::string canonical = read->text();
  const auto again = parseProblemText(canonical);
  require(again && *again == *read, "the canonical text is the same problem: " + canonical);
  require(again->text() == canonical, "the canonical text is canonical: " + canonical);
  const ProblemText open = read->withoutSizes();
  require(parseProblemText(open.text()) == open, "a problem without sizes is one: " + open.text());
  const ProblemText sized = open.withSizes(3, 5);
  require(parseProblemText(sized.text()) == sized, "a problem with sizes is one: " + sized.text());
}

/// Asks a package for the problem, as a host does.
void checkRequest(const std::string& text) {
  static const std::string bytes = test::standardPackage().bytes();
  static const host::Package package = [] {
    normc_context_options options = {};
    options.max_threads = 1;
    return host::Package(host::Context(options), bytes.data(), bytes.size());
  }();
  normc_request request = {};
  request.struct_size = sizeof request, request.problem = text.c_str();
  normc_plan* plan = nullptr;
  const normc_status status = normc_plan_create(package.get(), &request, &plan);
  if (status == NORMC_OK) {
    require(parseProblemText(text).has_value(), "a plan is of a problem");
    normc_plan_destroy(plan);
    return;
  }
  require(plan == nullptr && *normc_last_error() != 0, "a refused request gives nothing, and has a reason");
  if (!parseProblemText(text))
    require(status == NORMC_INVALID_ARGUMENT, "a text that is no problem is refused as one");
}

}  // namespace

void problems(std::string_view text) {
  checkGrammar(text);
  checkRequest(std::string(text.substr(0, text.find('\0'))));
  const auto problem = parseProblem(text, findNorm), request = parseRequest(text, findNorm);
  if (!problem) checkErrors(problem.errors(), text);
  if (!request) {
    checkErrors(request.errors(), text);
    require(!problem, "a problem is a request");
    return;
  }
  require(parseProblemText(text).has_value(), "a problem of a norm obeys the grammar");
  const std::string canonical = request->text();
  const auto again = parseProblem(canonical, findNorm);
  require(bool(again), "the canonical text is a problem: " + canonical);
  require(again->text() == canonical, "the canonical text is canonical: " + canonical);
  require(bool(checkProblem(*request)), "a problem that was read obeys its rules: " + canonical);
  require(parseProblemText(canonical) == request->parts(), "both readers agree: " + canonical);
  require(!operandsOf(*request).empty() || request->entry == Entry::Commit,
          "a call takes tensors: " + canonical);
  const Extents extents{.segments = 2, .rows = 3, .features = request->features.value_or(16)};
  for (const auto& fields : {stateFields(*request), savedFields(*request), partialFields(*request)})
    for (const Field& field : fields)
      require(!field.name.empty() && field.bytes(extents) >= 0, "a field has a size: " + canonical);
}

std::vector<std::string> seedsOfProblems() {
  std::vector<std::string> seeds = {
      "layer_norm:forward@f32[*x1024]",
      "layer_norm:forward@f32[64x1024]",
      "power_norm:backward@bf16[*x*]",
      "instance_norm:forward@f32[*x*x64]",
      "batch_norm:infer@f16[*x64x*]{layout=channels_first}",
      "batch_norm:infer_backward@f32[8x64x7]{layout=channels_first,mask}",
      "power_norm_released:forward@f32[*x1024]{heads=16,mask,params=bf16}",
      "rms_norm:forward@f32[*x4096]{y=bf16}",
      "rms_norm_residual:forward@bf16[*x4096]{stream=f32}",
      "rms_norm:forward@bf16[*x4096]{round=normalized}",
      "batch_norm:forward_reduce@f64[*x3]",
      "power_norm:commit@f32[*x12]",
  };
  for (const BuiltinNorm& norm : builtinNorms())
    for (const char* rest :
         {":forward@f32[*x64]{heads=2}", ":forward@f32[*x64]", ":infer@f16[*x64x*]{layout=channels_first}",
          ":backward@bf16[*x*x64]{heads=2,mask,params=bf16}", ":forward@bf16[*x64]{round=normalized,y=f32}",
          ":backward@bf16[*x63]{heads=2,stream=f32}", ":forward_apply@f64[*x64]", ":commit@f32[*x*]"})
      seeds.push_back(norm.name + rest);
  return seeds;
}

}  // namespace normc::fuzz
