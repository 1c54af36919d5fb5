#include "bench/kit/Text.h"

#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace normc::bench {

std::string format(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

nlohmann::json toJson(const measure::Ratio& ratio) {
  return {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
}

nlohmann::json inMicroseconds(const measure::Samples& samples) {
  const measure::Ratio m = measure::pairedRatio(samples, measure::Samples(samples.size(), 1e-6));
  return {{"median", m.value}, {"low", m.low}, {"high", m.high}};
}

void writeText(const std::string& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + file);
}

}  // namespace normc::bench
