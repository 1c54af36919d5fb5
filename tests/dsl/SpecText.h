// Short ways from a text to a spec or a problem, or to the errors it gives.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "dsl/Library.h"
#include "dsl/Problem.h"

namespace normc {

/// All errors of the text of a file "t.norm"; empty where it is legal.
inline std::string errorsOf(const std::string& text) {
  const auto specs = readNorms(text, "t.norm");
  return specs ? "" : normc::text(specs.errors());
}

using Texts = std::vector<std::string>;

/// The errors without place, line and hint: "message [rule]" each.
inline Texts brief(const std::string& text) {
  Texts out;
  const auto specs = readNorms(text, "t.norm");
  if (specs) return out;
  for (const Diagnostic& error : specs.errors()) out.push_back(error.message + " [" + error.rule + "]");
  return out;
}

/// The last norm of a legal text.
inline Spec specOf(const std::string& text) {
  const auto specs = readNorms(text, "t.norm");
  if (!specs || specs->empty()) {
    ADD_FAILURE() << "not legal:\n" << text << (specs ? "" : normc::text(specs.errors()));
    return {};
  }
  return *specs->back();
}

/// A norm `n` with these clauses, one a line, each indented by two blanks.
inline std::string norm(const std::vector<std::string>& clauses) {
  std::string out = "norm n {\n";
  for (const std::string& clause : clauses) out += "  " + clause + "\n";
  return out + "}\n";
}

/// The problem of a legal text, of a built-in norm.
inline Problem problemOf(const std::string& text) {
  const auto problem = parseProblem(text, findNorm);
  if (!problem) throw std::runtime_error(normc::text(problem.errors()));
  return *problem;
}

/// All errors of the text of a problem; empty where it is legal.
inline std::string problemErrors(const std::string& text) {
  const auto problem = parseProblem(text, findNorm);
  return problem ? "" : normc::text(problem.errors());
}

}  // namespace normc
