// Arguments of a call, made by changes to a legal one. All tensors and buffers lie in one block of memory, so
// that changes make them overlap.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/abi/Sizes.h"
#include "runtime/core/TensorArguments.h"
#include "runtime/normc.hpp"
#include "tests/fuzz/Target.h"

namespace normc::fuzz {

/// The bytes of the block, and the offset of the first argument of a legal call.
inline constexpr int64_t kArena = 1 << 14, kFirst = kArena / 4;

/// Numbers of the input; 0 behind its end.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  int64_t below(int64_t count) {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return value % count;
  }

 private:
  std::string_view bytes_;
};

struct FieldInfo {
  DLDataType type;
  int access;
};

/// A plan and what its queries tell of it.
struct Subject {
  std::shared_ptr<host::Plan> owner;
  const normc_plan* plan = nullptr;
  bool segmented = false, channelsFirst = false, backward = false, writesState = false, commits = false;
  std::array<std::optional<normc_tensor_info>, kTensorCount> tensors;
  std::vector<FieldInfo> state, saved;
  bool writesPartial = false, addsPartials = false;

  size_t bytes(normc_status (*query)(const normc_plan*, const normc_sizes*, size_t*),
               const normc_sizes& sizes) const {
    size_t bytes = 0;
    require(query(plan, &sizes, &bytes) == NORMC_OK, std::string("sizes of a call: ") + normc_last_error());
    return bytes;
  }
};

/// A tensor that a call may give.
struct Argument {
  bool given = false;
  int64_t at = 0;  ///< offset in the arena
  bool noData = false, noStrides = true, noShape = false;
  int32_t ndim = 0;
  std::array<int64_t, 20> shape = {}, strides = {};
  DLDataType type = {};
  int32_t deviceType = kDLCPU, deviceId = 0;  ///< a caller may give a number that no type has
  uint64_t byteOffset = 0;

  int64_t width() const { return std::max(1, type.bits * type.lanes / 8); }
  void compact() {
    int64_t stride = 1;
    for (int32_t i = std::min(ndim, 16); i-- > 0;
         stride = package::multiply(stride, std::max<int64_t>(shape[i], 0)))
      strides[i] = stride;
  }
  void take(std::initializer_list<int64_t> sizes) {
    ndim = int32_t(sizes.size());
    std::copy(sizes.begin(), sizes.end(), shape.begin());
    compact();
  }
};

/// Returns the number of elements; the largest int64_t if it is larger.
int64_t elementsOf(const Argument& a);

/// A buffer that a call may give.
struct Buffer {
  bool given = false;
  int64_t at = 0;
  size_t bytes = 0;
};

struct Input {
  const Subject* subject = nullptr;
  int64_t segments = 1, rows = 1, features = 1;
  std::array<Argument, kTensorCount> tensors;
  bool fieldsOfState = false, fieldsOfSaved = false, bothForms = false;
  std::vector<Argument> stateIn, stateOut, saved;
  size_t stateCount = 0, savedCount = 0, partialCount = 1;
  Buffer stateInBuffer, stateOutBuffer, savedBuffer, workspace, partial, partials;
  bool stream = false, inParts = false;

  normc_sizes sizes() const { return {sizeof(normc_sizes), segments, rows, features}; }
  /// Returns every tensor of the call.
  std::vector<Argument*> arguments() {
    std::vector<Argument*> all;
    for (Argument& each : tensors) all.push_back(&each);
    for (auto* list : {&stateIn, &stateOut, &saved})
      for (Argument& each : *list) all.push_back(&each);
    return all;
  }
  std::array<Buffer*, 6> buffers() {
    return {&stateInBuffer, &stateOutBuffer, &savedBuffer, &workspace, &partial, &partials};
  }
};

/// The plans whose calls are made: probes and norms of the runtime's tests.
const std::vector<Subject>& subjects();

/// Returns a legal call, all arguments apart.
Input legalInput(Bytes& bytes);

/// Changes one thing of a call.
void change(Input& in, Bytes& bytes);

}  // namespace normc::fuzz
