// A failure to make a kernel that is not caused by the kernel: a program does not start, crashes or takes too
// long, or the disk is full. The next attempt may succeed, so records of candidates must not keep it.
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

/// Returns an error of the same kind, with `what` in front of its message.
inline llvm::Error prefixed(const std::string& what, llvm::Error error) {
  const bool unavailable = error.isA<Unavailable>();
  const std::string message = what + llvm::toString(std::move(error));
  return unavailable ? llvm::make_error<Unavailable>(message) : llvm::createStringError(message);
}

}  // namespace normc::codegen
