#include "autotune/gate/PackageFile.h"

#include <filesystem>
#include <fstream>

#include "codegen/package/Writer.h"
#include "dsl/Library.h"
#include "dsl/Nearest.h"
#include "runtime/package/ManifestJson.h"

namespace normc::gate {
namespace {

normc_context_options optionsOf(int threads, const std::string& cudaLibrary) {
  normc_context_options options{};
  options.max_threads = threads;
  options.cuda_library = cudaLibrary.c_str();
  return options;
}

package::Manifest manifestOf(const host::Package& package) {
  try {
    return package::wholeManifest(package.manifest());
  } catch (const std::runtime_error& error) {  // the runtime checks what it needs; programs read more
    throw PackageError(error.what());
  }
}

}  // namespace

PackageFile::PackageFile(const std::string& path, int threads, const std::string& cudaLibrary)
    : path_(path),
      cudaLibrary_(cudaLibrary),
      context_(optionsOf(threads, cudaLibrary)),
      package_(context_, path),
      manifest_(manifestOf(package_)) {
  std::error_code none;
  bytes_ = int64_t(std::filesystem::file_size(path, none));
}

PackageFile::PackageFile(const std::string& path, const std::string& bytes, const std::string& cudaLibrary)
    : path_(path),
      cudaLibrary_(cudaLibrary),
      context_(optionsOf(0, cudaLibrary)),
      package_(context_, bytes.data(), bytes.size()),
      manifest_(manifestOf(package_)),
      bytes_(int64_t(bytes.size())) {}

PackageFile PackageFile::alone(size_t kernel) const {
  package::Writer writer(manifest_.producer);
  for (const package::Norm& norm : manifest_.norms) writer.addNorm(norm.name, norm.hash, norm.text);
  for (const package::Blob& blob : manifest_.blobs) writer.addBlob(bytesOf(blob), blob.kind, blob.isa);
  package::Kernel one = kernels().at(kernel);
  one.limits = {};
  writer.addKernel(std::move(one));
  return PackageFile(path_, writer.bytes(), cudaLibrary_);
}

std::string PackageFile::bytesOf(const package::Blob& blob) const {
  std::string bytes(blob.bytes, '\0');
  std::ifstream file(path_, std::ios::binary);
  file.seekg(std::streamoff(blob.offset)).read(bytes.data(), std::streamsize(blob.bytes));
  bytes.resize(size_t(file.gcount()));
  return bytes;
}

Result<host::Plan> PackageFile::plan(const std::string& problem, normc_request options) const {
  // The nearest name helps more than a list of all.
  const std::string norm = problem.substr(0, problem.find(':'));
  if (const auto found = find(norm); norm != problem && !found) return found.errors();
  try {
    return host::Plan(package_, problem, options);
  } catch (const host::Error& error) {
    if (error.status() != NORMC_INVALID_ARGUMENT) throw;
    // The language reports errors of a text better: with a caret and the nearest word.
    const auto request = parseRequest(problem, [this](std::string_view name) { return find(name); });
    if (request) throw;
    return request.errors();
  }
}

Result<Problem> PackageFile::problem(const std::string& text) const {
  return parseProblem(text, [this](std::string_view name) { return find(name); });
}

Result<std::shared_ptr<const Spec>> PackageFile::find(std::string_view name) const {
  std::vector<std::string> names;
  std::string all;
  for (const package::Norm& norm : manifest_.norms) {
    names.push_back(norm.name);
    all += (all.empty() ? "it has " : ", ") + norm.name;
    if (norm.name != name) continue;
    const auto specs = readNorms(norm.text, path_ + " (norm " + norm.name + ")");
    if (!specs) return specs.errors();
    return specs->front();
  }
  return Diagnostic{.message = path_ + " has no norm " + inQuotes(name),
                    .hint = didYouMean(name, names, all)};
}

}  // namespace normc::gate
