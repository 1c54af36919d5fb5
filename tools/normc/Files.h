// Whole files, read and written so that no reader ever sees half of one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normc::cli {

/// The content of a file or a pipe, and of the standard input for "-"; of nothing else, since a device may
/// never end. Reads at most `most` bytes: a caller with a limit passes one byte more.
std::string readFile(const std::string& path, size_t most = std::string::npos);

/// Whether what is written to `path` goes on at once, to a pipe or a device, instead of being kept; "-" is
/// the standard output.
bool isStream(const std::string& path);

/// True for `-` and the other names of the standard output.
bool isStandardOutput(const std::string& path);

/// Writes under a temporary name beside `path` and renames: on failure there is no new
/// file, and an old one is as it was. A stream is written through.
void writeFile(const std::string& path, std::string_view content);

/// A file of the command line, and the words for it in messages: "--records".
struct NamedFile {
  std::string what, path;
  char joint = ' ';  ///< between both: '=' for "--in x"
  std::string text() const { return what + joint + path; }
};

/// Fails if the output is one of the other files, by whatever path: writing it would replace that one.
/// `hint`: what else the user may want.
void requireOwnFile(const NamedFile& output, const std::vector<NamedFile>& others,
                    const std::string& hint = "");

/// Fails before long work is done for a file that cannot be written.
void requireWritable(const std::string& path);
/// Makes the folder; fails if it is none, or no file can be made in it.
void requireFolder(const std::string& path);

}  // namespace normc::cli
