#include "dsl/ProblemOptions.h"

#include <algorithm>
#include <iterator>

#include "dsl/Nearest.h"
#include "dsl/Numbers.h"

namespace normc {
namespace {

bool isNumberOf(const Spec& spec, const std::string& name) {
  return std::ranges::any_of(numbers(spec), [&](const Number& number) { return number.name == name; });
}

// Returns "it needs heads=N, the number of its groups" for the first binding that is not given; empty: all
// are.
std::string missingBinding(const Spec& spec, const std::vector<std::string>& given) {
  for (const std::string& name : bindingNames(spec))
    if (std::ranges::count(given, name) == 0) return "it needs " + name + "=N, the number of its groups";
  return "";
}

std::string hintOn(const Spec& spec, const std::string& name, const std::string& option,
                   const std::vector<std::string>& given) {
  if (isNumberOf(spec, name))
    return name + " is a number of the norm, no part of a problem: --number " +
           (option == name ? name + "=..." : option) + " of run and explain, or request.numbers";
  std::vector<std::string> known = bindingNames(spec);
  known.insert(known.end(), std::begin(kProblemOptions), std::end(kProblemOptions));
  const std::string missing = missingBinding(spec, given);
  return didYouMean(name, known, missing.empty() ? "the options are " + oneOf(known) : missing);
}

}  // namespace

Diagnostic unknownOption(const Spec& spec, std::string_view option, const std::vector<std::string>& given) {
  const std::string name(option.substr(0, option.find('=')));
  return {.message = inQuotes(spec.name) + " has no option " + inQuotes(name),
          .rule = "P4",
          .hint = hintOn(spec, name, std::string(option), given)};
}

}  // namespace normc
