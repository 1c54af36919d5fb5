#include "tools/plot/Gnuplot.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace normc::plot {
namespace {

constexpr unsigned kSeconds = 60;
constexpr std::pair<const char*, const char*> kTerminals[] = {
    {".svg", "svg noenhanced size 1000,700 dynamic background \"white\""},
    {".png", "png noenhanced size 1000,700"}};

/// A folder for the script, what gnuplot says, and the pictures until they are known to be whole.
class Folder {
 public:
  std::error_code make() { return llvm::sys::fs::createUniqueDirectory("normc-plot", path_); }
  ~Folder() {
    if (!path_.empty()) (void)llvm::sys::fs::remove_directories(path_);
  }
  std::string at(const std::string& name) const { return path_.str().str() + "/" + name; }
  /// In the quotes of gnuplot in which nothing but they themselves is a command.
  std::string quoted() const {
    std::string text;
    for (const char c : path_) text += c == '\'' ? "''" : std::string(1, c);
    return "'" + text + "'";
  }

 private:
  llvm::SmallString<128> path_;
};

/// Runs gnuplot on a script; an error is what it said.
llvm::Error run(const std::string& gnuplot, const Folder& folder, const std::string& script) {
  const std::string file = folder.at("script"), log = folder.at("log");
  std::error_code error;
  llvm::raw_fd_ostream out(file, error);
  out << "cd " << folder.quoted() << "\n" << script;
  out.close();
  if (out.has_error()) {
    error = out.error();
    out.clear_error();  // a stream that still has one ends the program
  }
  if (error) return llvm::createStringError("cannot write " + file + ": " + error.message());
  const std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), log, log};
  std::string why;
  if (llvm::sys::ExecuteAndWait(gnuplot, {gnuplot, file}, std::nullopt, redirects, kSeconds, 0, &why) == 0)
    return llvm::Error::success();
  if (auto said = llvm::MemoryBuffer::getFile(log)) why += (*said)->getBuffer().str();
  return llvm::createStringError("gnuplot could not draw: " + why);
}

/// Returns a picture. On a full disk gnuplot leaves half of it and says nothing.
llvm::Expected<Drawn> wholePicture(const Folder& folder, const std::string& name) {
  auto read = llvm::MemoryBuffer::getFile(folder.at(name));
  if (!read)
    return llvm::createStringError("cannot read " + folder.at(name) + ": " + read.getError().message());
  const llvm::StringRef bytes = (*read)->getBuffer();
  const bool whole = llvm::StringRef(name).ends_with("svg")
                         ? bytes.rtrim().ends_with("</svg>")
                         : bytes.drop_back(std::min<size_t>(4, bytes.size())).ends_with("IEND");
  if (!whole) return llvm::createStringError("gnuplot could not write all of " + folder.at(name));
  return Drawn{name, bytes.str()};
}

}  // namespace

std::string block(const std::string& name, const std::string& rows) {
  return "$" + name + " << EOD\n" + rows + "EOD\n";
}

std::string plain(std::string text) {
  std::erase_if(text,
                [](unsigned char c) { return c == '"' || c == '\\' || c == '$' || c == '`' || c < ' '; });
  return text;
}

bool isThere() { return bool(llvm::sys::findProgramByName("gnuplot")); }

llvm::Expected<std::vector<Drawn>> draw(const std::vector<Picture>& pictures) {
  const auto gnuplot = llvm::sys::findProgramByName("gnuplot");
  if (!gnuplot)
    return llvm::createStringError(
        "pictures are drawn by gnuplot, which is not on the PATH; on Debian: apt-get install gnuplot-nox");
  Folder folder;
  if (const std::error_code error = folder.make())
    return llvm::createStringError("cannot make a temporary folder: " + error.message());
  std::vector<Drawn> files;
  for (const Picture& picture : pictures) {
    std::string commands = picture.data;
    for (const auto& [ending, terminal] : kTerminals)
      commands += std::string("set terminal ") + terminal + "\nset output \"" + picture.name + ending +
                  "\"\n" + picture.script + "unset output\n";
    if (auto error = run(*gnuplot, folder, commands)) return std::move(error);
    for (const auto& [ending, terminal] : kTerminals) {
      auto file = wholePicture(folder, picture.name + ending);
      if (!file) return file.takeError();
      files.push_back(std::move(*file));
    }
  }
  return files;
}

}  // namespace normc::plot
