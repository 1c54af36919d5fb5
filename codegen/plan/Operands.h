// The tensors that one sweep reads, by the names that its formula uses.
#pragma once

#include <string>
#include <vector>

#include "codegen/plan/Builder.h"

namespace normc::codegen {

/// The operands of one sweep, by name. x and, if the problem has one, the mask are always among them.
class Operands {
 public:
  explicit Operands(KernelBuilder& k) : k_(k) {
    read("x");
    if (k.problem().mask) read("mask");
  }
  void read(llvm::StringRef argument) { add(argument, k_.argument(argument)); }
  void add(llvm::StringRef key, llvm::StringRef tensor) {
    keys_.push_back(key.str());
    sweep.reads.push_back(tensor);
  }
  Num get(llvm::StringRef key, const Nums& e) const {
    for (size_t i = 0; i < keys_.size(); ++i)
      if (keys_[i] == key) return e[i];
    return {};
  }
  KernelBuilder::Sweep sweep;

 private:
  KernelBuilder& k_;
  std::vector<std::string> keys_;
};

}  // namespace normc::codegen
