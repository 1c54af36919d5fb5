#include "autotune/measure/Tensors.h"

#include <algorithm>
#include <stdexcept>

#include "dsl/HardInputs.h"

namespace normc::measure {

std::string Shape::text() const {
  const std::string r = std::to_string(rows), f = std::to_string(features), n = std::to_string(segments);
  if (layout == Layout::ChannelsFirst) return n + " x " + f + " x " + r + ", channels first";
  return (segments == 1 ? "" : n + " x ") + r + " x " + f;
}

Held TensorMaker::tensor(const TensorInfo& info, uint64_t seed) const {
  const DType type = typeOf(info.tensor, types);
  const auto made = [&](int64_t size) {
    return scatter && !device ? scatteredZeros(size, scatter) : Memory(size);
  };
  const auto zeros = [&](int64_t count) { return Held::of(made(count * bytes(type)), device); };
  const auto random = [&](int64_t count, float mean, float sigma) {
    Memory memory = made(count * bytes(type));
    fill(memory, type, count, seed, mean, sigma);
    return Held::of(std::move(memory), device);
  };
  const bool written = info.written(entry());
  const auto vectors = [&](int64_t count) {
    if (written) return zeros(count * extents.features);
    return random(count * extents.features, info.tensor == kScale ? 1 : 0, 0.1f);
  };
  const int64_t elements = extents.totalRows() * extents.features;
  switch (shapeOf(info.tensor, has)) {
    case TensorShape::Elements:
      if (device) return Held(filled(*device, type, elements * bytes(type), seed));
      return written ? zeros(elements) : random(elements, 0, 1);
    case TensorShape::PerFeature:
      return vectors(1);
    case TensorShape::PerSegment:
      return vectors(extents.segments);
    case TensorShape::PerBlock:  // a scale for each row, or for as many blocks as there may be
      return zeros(elements);
    case TensorShape::One:
      return random(1, 1, 0);
    case TensorShape::PerPair:  // as many pairs as there may be
      return random(elements / 2, 0, 0.5f);
    case TensorShape::PerRow:
      break;
  }
  const std::vector<uint8_t> rows = hardMask(HardMask::Tails, extents);
  Memory mask = made(int64_t(rows.size()));
  std::copy(rows.begin(), rows.end(), static_cast<uint8_t*>(mask.data()));
  return Held::of(std::move(mask), device);
}

bool TensorMaker::makes(const TensorInfo& info) const {
  if (isTaken(info, entry(), has)) return true;
  return backward && isTaken(info, Entry::Forward, has) && !info.written(Entry::Forward);
}

TensorSet TensorMaker::make(int number, const TensorSet& first) const {
  TensorSet set = first;
  set.inputs_.clear();
  set.outputs_.clear();
  for (const TensorInfo& each : kTensorTable) {
    if (!makes(each)) continue;
    std::shared_ptr<const Held>& memory = set.memory[each.tensor];
    const bool wide = isXSized(each.tensor, has);
    if (!memory || wide)
      memory =
          std::make_shared<const Held>(tensor(each, 1 + 1000 * uint64_t(each.tensor) + uint64_t(number)));
    if (wide) (each.written(entry()) ? set.outputs_ : set.inputs_).push_back(each.tensor);
  }
  return set;
}

std::vector<const void*> TensorSet::inputs() const {
  std::vector<const void*> all;
  for (const Tensor each : inputs_) all.push_back((*this)[each]);
  return all;
}

std::vector<void*> TensorSet::outputs() const {
  std::vector<void*> all;
  for (const Tensor each : outputs_) all.push_back((*this)[each]);
  return all;
}

const Held& TensorSet::output() const {
  if (outputs_.empty()) throw std::logic_error("a set without an output");
  return *memory[outputs_.front()];
}

int64_t TensorSet::leastBytes() const {
  int64_t least = output().bytes();
  for (const auto* tensors : {&inputs_, &outputs_})
    for (const Tensor each : *tensors) least = std::min(least, memory[each]->bytes());
  return least;
}

Tensors::Tensors(DType data, const Shape& shape, bool gradients)
    : TensorSet(
          TensorMaker{.types = {.data = data, .params = statisticsOf(data), .output = data, .stream = data},
                      .extents = {shape.segments, shape.rows, shape.features},
                      .has = {.scale = true, .bias = true},
                      .backward = gradients}
              .make()),
      data(data),
      params(statisticsOf(data)),
      shape(shape) {}

}  // namespace normc::measure
