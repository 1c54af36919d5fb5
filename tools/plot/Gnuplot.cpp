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

/// Runs gnuplot on a script; an error is what it said.
llvm::Error run(const std::string& gnuplot, const std::string& script) {
  llvm::SmallString<128> file, log;
  if (auto error = llvm::sys::fs::createTemporaryFile("normc-plot", "gp", file))
    return llvm::errorCodeToError(error);
  if (auto error = llvm::sys::fs::createTemporaryFile("normc-plot", "log", log))
    return llvm::errorCodeToError(error);
  const llvm::FileRemover removeFile(file), removeLog(log);
  std::error_code error;
  llvm::raw_fd_ostream out(file, error);
  out << script;
  out.close();
  if (out.has_error())
    error = out.error(), out.clear_error();  // a stream that still has one ends the program
  if (error) return llvm::createStringError("cannot write " + file.str().str() + ": " + error.message());
  const std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), log.str(), log.str()};
  std::string why;
  if (llvm::sys::ExecuteAndWait(gnuplot, {gnuplot, file}, std::nullopt, redirects, kSeconds, 0, &why) == 0)
    return llvm::Error::success();
  if (auto said = llvm::MemoryBuffer::getFile(log)) why += (*said)->getBuffer().str();
  return llvm::createStringError("gnuplot could not draw: " + why);
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

llvm::Expected<std::vector<std::string>> draw(const std::vector<Picture>& pictures,
                                              const std::string& folder) {
  const auto gnuplot = llvm::sys::findProgramByName("gnuplot");
  if (!gnuplot)
    return llvm::createStringError(
        "pictures are drawn by gnuplot, which is not on the PATH; on Debian: apt-get install gnuplot-nox");
  if (auto error = llvm::sys::fs::create_directories(folder))
    return llvm::createStringError("cannot make the folder " + folder + ": " + error.message());
  std::vector<std::string> files;
  for (const Picture& picture : pictures) {
    std::string commands = picture.data;
    for (const auto& [ending, terminal] :
         {std::pair("svg", "svg noenhanced size 1000,700 dynamic background \"white\""),
          std::pair("png", "png noenhanced size 1000,700")}) {
      const std::string file = folder + "/" + picture.name + "." + ending;
      commands += "set terminal " + std::string(terminal) + "\nset output \"" + plain(file) + "\"\n" +
                  picture.script + "unset output\n";
      files.push_back(file);
    }
    if (auto error = run(*gnuplot, commands)) return std::move(error);
  }
  return files;
}

}  // namespace normc::plot
