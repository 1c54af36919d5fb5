#include "tools/normc/FieldFolder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "tools/normc/Failure.h"
#include "tools/normc/Npy.h"
#include "tools/normc/Output.h"

namespace normc::cli {

namespace fs = std::filesystem;

namespace {

std::vector<int64_t> shapeOf(const normc_field& field) { return {field.shape, field.shape + field.ndim}; }

std::string describe(DType type, const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return npyName(type) + " [" + joined(sizes, ", ") + "]";
}

std::vector<fs::path> arraysIn(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".npy") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string fileOf(const std::string& folder, const normc_field& field) {
  return (fs::path(folder) / (std::string(field.name) + ".npy")).string();
}

bool holdsFields(const std::string& folder) { return !arraysIn(folder).empty(); }

void readFields(const std::string& folder, const std::string& what, FieldBuffer& buffer) {
  std::vector<std::string> names;
  for (const normc_field& field : buffer.fields) names.push_back(field.name);
  if (!fs::is_directory(folder))
    throw refused("there is no folder " + folder + " with the fields of " + what,
                  "they are " + joined(names) + ", each in a .npy file of its name");
  for (const fs::path& file : arraysIn(folder))
    if (std::find(names.begin(), names.end(), file.stem().string()) == names.end())
      throw refused(file.string() + " is no field of " + what, "it has the fields " + joined(names));
  for (const normc_field& field : buffer.fields) {
    const std::string file = fileOf(folder, field);
    if (!fs::exists(file))
      throw refused("the folder " + folder + " lacks the field " + field.name + " of " + what,
                    "it has the fields " + joined(names) + ", each in a .npy file of its name");
    const NpyArray array = readNpy(file);
    if (array.type != typeOfField(field.type) || array.shape != shapeOf(field))
      throw refused(file + " is " + describe(array.type, array.shape) + "; the field " + field.name + " of " +
                    what + " is " + describe(typeOfField(field.type), shapeOf(field)));
    std::memcpy(static_cast<char*>(buffer.memory.data()) + field.offset, array.data.data(), field.bytes);
  }
}

namespace {

/// The files of a folder, which get new content together: if one cannot be replaced, all are as they were.
class Replacement {
 public:
  ~Replacement() {
    std::error_code none;
    for (const std::string& file : files_) fs::remove(newOf(file), none);
  }
  void add(const std::string& file, const NpyArray& array) {
    files_.push_back(file);
    writeNpy(newOf(file), array);
  }
  /// A process that is killed leaves a folder that lacks fields, which is an error of its reader, and none
  /// with fields of two calls.
  void commit() {
    std::error_code none;
    for (const std::string& file : files_)
      if (fs::exists(file, none)) {
        move(file, oldOf(file), file);
        aside_.push_back(file);
      }
    for (const std::string& file : files_) {
      move(newOf(file), file, file);
      placed_.push_back(file);
    }
    for (const std::string& file : files_) fs::remove(oldOf(file), none);
  }

 private:
  static std::string newOf(const std::string& file) { return file + ".new"; }
  static std::string oldOf(const std::string& file) { return file + ".old"; }
  void move(const std::string& from, const std::string& to, const std::string& file) {
    std::error_code error, none;
    fs::rename(from, to, error);
    if (!error) return;
    for (const std::string& each : placed_) fs::remove(each, none);
    std::string left;
    for (const std::string& each : aside_) {
      std::error_code failed;
      fs::rename(oldOf(each), each, failed);
      if (failed) left += (left.empty() ? "" : ", ") + oldOf(each);
    }
    throw refused("cannot write " + file + ": " + error.message(),
                  left.empty() ? "the fields of its folder are as they were"
                               : "what was in its folder is in " + left + " now");
  }

  std::vector<std::string> files_, aside_, placed_;
};

}  // namespace

void writeFields(const std::string& folder, const FieldBuffer& buffer) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw refused("cannot make the folder " + folder + ": " + error.message());
  Replacement fields;
  for (const normc_field& field : buffer.fields) {
    const char* data = static_cast<const char*>(buffer.memory.data()) + field.offset;
    fields.add(fileOf(folder, field),
               {typeOfField(field.type), shapeOf(field), std::string(data, field.bytes)});
  }
  fields.commit();
}

}  // namespace normc::cli
