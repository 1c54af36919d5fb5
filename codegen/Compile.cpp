#include "codegen/Compile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

namespace normc::codegen {

llvm::Expected<Stage> findStage(llvm::StringRef name, llvm::ArrayRef<std::string> legal) {
  auto stage = llvm::StringSwitch<std::optional<Stage>>(name)
                   .Case("sweeps", Stage::Sweeps)
                   .Case("loops", Stage::Loops)
                   .Case("gpu", Stage::Gpu)
                   .Case("llvm", Stage::Llvm)
                   .Case("asm", Stage::Assembly)
                   .Case("ptx", Stage::Ptx)
                   .Case("sass", Stage::Sass)
                   .Default(std::nullopt);
  if (stage && llvm::is_contained(legal, name)) return *stage;
  return llvm::createStringError("no stage '" + name.str() + "'; legal: " + llvm::join(legal, ", "));
}

std::string textOf(const llvm::Module& ir) {
  std::string text;
  llvm::raw_string_ostream out(text);
  ir.print(out, nullptr);
  return text;
}

}  // namespace normc::codegen
