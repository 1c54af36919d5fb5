// Why a verb could not do its work: diagnostics, and the exit code they lead to.
//
// A verb throws it, run() in Cli.cpp prints it; nothing else prints errors. All
// errors look alike:
//
//   normc: error: there is no norm 'layernorm'
//     hint: did you mean 'layer_norm'?
//
// and those of a .norm file begin with their place, as editors expect.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "dsl/Result.h"
#include "llvm/Support/Error.h"
#include "tools/normc/ExitCode.h"
#include "tools/normc/Output.h"

namespace normc::cli {

/// With --json an error is one document, {"errors": [...]}, on the standard output, beside its text on the
/// standard error; `fmt` has its "norms" in it too.
inline Json jsonOf(const std::vector<Diagnostic>& diagnostics) {
  Json errors = Json::array();
  for (const Diagnostic& error : diagnostics)
    errors.push_back({{"file", error.where.file},
                      {"line", error.where.line},
                      {"column", error.where.column},
                      {"rule", error.rule},
                      {"message", error.message},
                      {"hint", error.hint}});
  return errors;
}

class Failure : public std::exception {
 public:
  Failure(ExitCode code, std::vector<Diagnostic> diagnostics)
      : code_(code), diagnostics_(std::move(diagnostics)), text_(render(diagnostics_)) {}

  ExitCode code() const { return code_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  static std::string render(const std::vector<Diagnostic>& diagnostics) {
    std::string text;
    for (const Diagnostic& each : diagnostics)
      text += (each.where.file.empty() ? "normc: " : "") + each.text();
    return text;
  }

  ExitCode code_;
  std::vector<Diagnostic> diagnostics_;
  std::string text_;
};

/// The command line is wrong.
inline Failure usage(std::string message, std::string hint = "") {
  return {ExitCode::Usage, {{.message = std::move(message), .hint = std::move(hint)}}};
}
/// The command line is right, what it names is not.
inline Failure refused(std::string message, std::string hint = "") {
  return {ExitCode::Refused, {{.message = std::move(message), .hint = std::move(hint)}}};
}

template <typename T>
T valueOf(Result<T> result, ExitCode otherwise) {
  if (!result) throw Failure(otherwise, result.errors());
  return *std::move(result);
}
template <typename T>
T valueOf(llvm::Expected<T> result, ExitCode otherwise) {
  if (!result) throw Failure(otherwise, {{.message = llvm::toString(result.takeError())}});
  return std::move(*result);
}

}  // namespace normc::cli
