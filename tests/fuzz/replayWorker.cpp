// A program in the place of normc-worker that answers with the lines of a file, which the environment names
// in NORMC_FUZZ_ANSWERS. A line `KIND TEXT` answers requests of that kind alone ("do" of the request), in
// turn; any other line is answered to the next request for which there is none. `$NUMBER` in an answer
// becomes the lists of samples that the request asks for, each of this number.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

/// Returns the text between the first `before` and the next `after` behind it.
std::string between(const std::string& text, const std::string& before, char after) {
  const size_t at = text.find(before);
  if (at == text.npos) return "";
  const size_t begin = at + before.size(), end = text.find(after, begin);
  return text.substr(begin, end == text.npos ? end : end - begin);
}

size_t count(const std::string& text, char c) {
  size_t n = 0;
  for (const char each : text) n += each == c;
  return n;
}

/// Returns the answer with the samples in the place of "$NUMBER".
std::string expanded(const std::string& answer, const std::string& request) {
  const size_t at = answer.find('$');
  if (at == answer.npos) return answer;
  size_t end = answer.find_first_not_of("0123456789.eE+-", at + 1);
  if (end == answer.npos) end = answer.size();
  const std::string number = answer.substr(at + 1, end - at - 1);
  const size_t rounds = std::strtoul(between(request, "\"rounds\":", ',').c_str(), nullptr, 10);
  const size_t names = count(between(request, "\"names\":[", ']'), '"') / 2;
  std::string lists = "[";
  for (size_t i = 0; i < names; ++i) {
    lists += i ? ",[" : "[";
    for (size_t round = 0; round < rounds; ++round) lists += (round ? "," : "") + number;
    lists += "]";
  }
  return answer.substr(0, at) + lists + "]" + answer.substr(end);
}

}  // namespace

int main() {
  const char* const path = std::getenv("NORMC_FUZZ_ANSWERS");
  std::ifstream file(path ? path : "");
  const std::string kinds[] = {"task", "load", "gate", "sample", "copy"};
  std::map<std::string, std::vector<std::string>> answers;
  for (std::string line; std::getline(file, line);) {
    const std::string first = line.substr(0, line.find(' '));
    bool known = false;
    for (const std::string& kind : kinds) known |= kind == first;
    answers[known ? first : ""].push_back(known && first.size() < line.size() ? line.substr(first.size() + 1)
                                          : known                             ? ""
                                                                              : line);
  }
  std::map<std::string, size_t> given;
  for (std::string request; std::getline(std::cin, request);) {
    std::string kind = between(request, "\"do\":\"", '"');
    if (answers[kind].empty()) kind = "";
    const std::vector<std::string>& list = answers[kind];
    if (list.empty()) return 3;
    std::cout << expanded(list[given[kind]++ % list.size()], request) << std::endl;
  }
  return 0;
}
