// Whole files, read and written so that no reader ever sees half of one.
#pragma once

#include <string>
#include <string_view>

namespace normc::cli {

/// The content of a file; of the standard input for "-".
std::string readFile(const std::string& path);

/// Whether what is written to `path` goes on at once, to a pipe or a device, instead of being kept; "-" is the
/// standard output.
bool isStream(const std::string& path);

/// Writes under a temporary name beside `path` and renames: on failure there is no new
/// file, and an old one is as it was. A stream is written through.
void writeFile(const std::string& path, std::string_view content);

/// Fails before long work is done for a file that cannot be written.
void requireWritable(const std::string& path);

}  // namespace normc::cli
