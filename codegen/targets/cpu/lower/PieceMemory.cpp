#include "codegen/targets/cpu/lower/PieceMemory.h"

#include "runtime/abi/MemoryUnits.h"

using namespace mlir;

namespace normc::codegen {

/// The bytes of the longest piece of one value of the statistics type.
static constexpr int64_t kPlaceBytes = kPage;

int64_t PieceMemory::mostRows(Type statistics) {
  return kPlaceBytes * 8 / statistics.getIntOrFloatBitWidth();
}

StackMemory PieceMemory::place() {
  const int64_t size = elementBytes(f_.statistics());
  return {l_, (kPlaceBytes + kApart) / size, f_.statistics(), kCacheLine};
}

void PieceMemory::allocateLevels(size_t levels, size_t sums) {
  levels_.resize(levels);
  for (auto& level : levels_)
    for (size_t k = 0; k < sums; ++k) level.push_back(place());
}

void PieceMemory::clear(Places places, Combiners combiners, Value rows) {
  l_.forEach(l_.index(0), rows, lanes_, [&](Value j) {
    for (auto [place, combiner] : llvm::zip(places, combiners))
      place.store(l_, j, l_.identity(combiner, VectorType::get({lanes_}, f_.statistics())));
  });
}

void PieceMemory::combine(Places from, Places to, Combiners combiners, Value rows) {
  l_.forEach(l_.index(0), rows, lanes_, [&](Value j) {
    for (auto [source, place, combiner] : llvm::zip(from, to, combiners))
      place.store(l_, j, l_.combine(combiner, place.load(l_, j, lanes_), source.load(l_, j, lanes_)));
  });
}

}  // namespace normc::codegen
