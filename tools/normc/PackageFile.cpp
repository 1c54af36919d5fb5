#include "tools/normc/PackageFile.h"

#include <algorithm>
#include <filesystem>

#include "dsl/Library.h"
#include "dsl/Nearest.h"
#include "llvm/Support/SHA256.h"
#include "tools/normc/Files.h"

namespace normc::cli {
namespace {

normc_context_options optionsOf(int threads, const std::string& cudaLibrary) {
  normc_context_options options{};
  options.max_threads = threads;
  options.cuda_library = cudaLibrary.c_str();
  return options;
}

}  // namespace

Failure failureOf(const host::Error& error) {
  return error.status() == NORMC_INVALID_ARGUMENT ? usage(error.what()) : refused(error.what());
}

PackageFile::PackageFile(const std::string& path, int threads, const std::string& cudaLibrary)
    : path_(path),
      context_(translated([&] { return host::Context(optionsOf(threads, cudaLibrary)); })),
      package_(translated([&] { return host::Package(context_, path); })),
      manifest_(Json::parse(package_.manifest())) {
  std::error_code none;
  bytes_ = int64_t(std::filesystem::file_size(path, none));
}

PackageFile::PackageFile(const std::string& path, const std::string& bytes, const std::string& cudaLibrary)
    : path_(path),
      context_(translated([&] { return host::Context(optionsOf(0, cudaLibrary)); })),
      package_(translated([&] { return host::Package(context_, bytes.data(), bytes.size()); })),
      manifest_(Json::parse(package_.manifest())),
      bytes_(int64_t(bytes.size())) {}

/// docs/package-format.md: the manifest's length and hash stand in the header. A shorter manifest is filled
/// up with blanks, so that every blob stays where it is.
PackageFile PackageFile::alone(size_t kernel, const std::string& cudaLibrary) const {
  constexpr size_t kLengthAt = 16, kHashAt = 24, kManifestAt = 64;
  std::string bytes = readFile(path_);
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes.at(kLengthAt + i));
  Json manifest = manifest_;
  manifest["kernels"] = Json::array({kernels().at(kernel)});
  manifest["kernels"][0].erase("limits");
  std::string text = manifest.dump();
  text.resize(std::max<size_t>(length, text.size()), ' ');
  if (text.size() != length)
    throw refused(path_ + " cannot be taken apart: its manifest is shorter than it should be");
  bytes.replace(kManifestAt, length, text);
  const auto hash =
      llvm::SHA256::hash(llvm::ArrayRef(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  bytes.replace(kHashAt, hash.size(), std::string(hash.begin(), hash.end()));
  return PackageFile(path_, bytes, cudaLibrary);
}

host::Plan PackageFile::plan(const std::string& problem, normc_request options) const {
  // The nearest name helps more than a list of all.
  const std::string norm = problem.substr(0, problem.find(':'));
  if (const auto found = find(norm); norm != problem && !found)
    throw Failure(ExitCode::Usage, found.errors());
  try {
    return host::Plan(package_, problem, options);
  } catch (const host::Error& error) {
    const Failure failure = failureOf(error);
    // What is wrong with a text, the language says better: with a caret and the nearest word.
    if (failure.code() == ExitCode::Usage)
      valueOf(parseRequest(problem, [this](std::string_view name) { return find(name); }), ExitCode::Usage);
    throw failure;
  }
}

Problem PackageFile::problem(const std::string& text) const {
  return valueOf(parseProblem(text, [this](std::string_view name) { return find(name); }), ExitCode::Usage);
}

Result<std::shared_ptr<const Spec>> PackageFile::find(std::string_view name) const {
  std::vector<std::string> names;
  for (const Json& norm : manifest_.at("norms")) {
    names.push_back(norm.at("name"));
    if (names.back() != name) continue;
    const auto specs = readNorms(norm.at("text").get<std::string>(), path_ + " (norm " + names.back() + ")");
    if (!specs) return specs.errors();
    return specs->front();
  }
  return Diagnostic{.message = path_ + " has no norm " + inQuotes(name),
                    .hint = didYouMean(name, names, names.empty() ? "" : "it has " + joined(names))};
}

}  // namespace normc::cli
