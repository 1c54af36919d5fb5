// Readers of what stands on the command line, with one wording for all that does not fit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dsl/Problem.h"

namespace normc::cli {

/// `value` if it is one of `legal`; else a Failure that suggests the nearest.
std::string wordOf(const std::string& flag, const std::string& value, const std::vector<std::string>& legal);
int64_t wholeOf(const std::string& flag, const std::string& value, int64_t least);
double numberOf(const std::string& flag, const std::string& value);
/// `20s`, `500ms`, `2m` or a number of seconds.
double secondsOf(const std::string& flag, const std::string& text);
/// `NAME=VALUE`; `form` is what the message shows, e.g. "heads=16".
std::pair<std::string, std::string> pairOf(const std::string& flag, const std::string& value,
                                           const std::string& form);

/// The words of a list with commas; at least one. Parts of a flag given more than once stand on lines.
std::vector<std::string> listOf(const std::string& flag, const std::string& text);

Entry entryOf(const std::string& flag, const std::string& value);
DType dtypeOf(const std::string& flag, const std::string& value);
Layout layoutOf(const std::string& flag, const std::string& value);

using Norm = std::shared_ptr<const Spec>;

/// True if the word names a file rather than a built-in norm: it ends in .norm, has a slash, or is
/// "-", the standard input.
bool namesFile(const std::string& norm);
/// A Failure where the word that stands for a package is the name of a norm, or "-".
void requirePackage(const std::string& file);
/// All norms of a text; one at least, or a Failure that names `file`.
std::vector<Norm> normsIn(const std::string& text, const std::string& file);
/// The norm of a built-in name, or all norms of a file.
std::vector<Norm> normsOf(const std::string& norm);

}  // namespace normc::cli
