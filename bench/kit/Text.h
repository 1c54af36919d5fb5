// Measured numbers as the benchmarks print and record them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "autotune/measure/Stats.h"

namespace normc::bench {

/// Returns what printf would print, of at most 511 characters.
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

/// {"value", "low", "high"}
nlohmann::json toJson(const measure::Ratio&);

/// {"median", "low", "high"}: the median in microseconds, and the interval of its bootstrap.
nlohmann::json inMicroseconds(const measure::Samples&);

/// Writes the file. Throws std::runtime_error if not all of the text can be written.
void writeText(const std::string& file, const std::string& text);

}  // namespace normc::bench
