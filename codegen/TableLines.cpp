#include "codegen/TableLines.h"

#include "dsl/Library.h"

namespace normc::codegen {

llvm::Error forEachTableLine(llvm::StringRef lines,
                             llvm::function_ref<llvm::Error(const llvm::json::Object&)> add) {
  const auto addLine = [&](llvm::StringRef text) -> llvm::Error {
    auto json = llvm::json::parse(text);
    if (!json) return json.takeError();
    const llvm::json::Object* object = json->getAsObject();
    return add(object ? *object : llvm::json::Object());
  };
  for (size_t number = 2; !lines.empty(); ++number) {
    const auto [first, rest] = lines.split('\n');
    lines = rest;
    if (first.empty()) continue;
    if (auto error = addLine(first))
      return llvm::createStringError("line " + std::to_string(number) + ": " +
                                     llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}

std::string textAt(const llvm::json::Object& line, llvm::StringRef key) {
  return line.getString(key).value_or("").str();
}

llvm::Expected<Problem> problemAt(const llvm::json::Object& line) {
  const std::string text = textAt(line, "problem");
  auto problem = parseProblem(text, findNorm);
  if (!problem) return llvm::createStringError(normc::text(problem.errors()));
  return *problem;
}

}  // namespace normc::codegen
