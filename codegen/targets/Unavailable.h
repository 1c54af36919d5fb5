// Why a kernel was not made, where that says nothing of the kernel: a program that does not
// start, crashes or takes too long, a linker that is missing. The next try may go well, so
// whoever remembers what candidates are like forgets this.
#pragma once

#include <string>

#include "llvm/Support/Error.h"

namespace normc::codegen {

class Unavailable : public llvm::ErrorInfo<Unavailable> {
 public:
  inline static char ID = 0;

  explicit Unavailable(std::string message) : message_(std::move(message)) {}
  void log(llvm::raw_ostream& out) const override { out << message_; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

 private:
  std::string message_;
};

/// An error of the same kind, `what` before its words.
inline llvm::Error prefixed(const std::string& what, llvm::Error error) {
  const bool unavailable = error.isA<Unavailable>();
  const std::string message = what + llvm::toString(std::move(error));
  return unavailable ? llvm::make_error<Unavailable>(message) : llvm::createStringError(message);
}

}  // namespace normc::codegen
