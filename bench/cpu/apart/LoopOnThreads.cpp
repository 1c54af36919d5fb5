#include "bench/cpu/apart/LoopOnThreads.h"

#include <algorithm>

#include "autotune/measure/Memory.h"

namespace normc::bench::apart {

LoopOnThreads::LoopOnThreads(const Loop& loop, int64_t segments, std::array<void*, 2> sums,
                             runtime::Pool& pool)
    : loop_(loop),
      segments_(segments),
      sums_(sums),
      sumCount_(countsOf(loop.op).sums),
      threads_(pool.workers() + 1),
      parts_(threads_ == 1 ? 1 : int64_t(threads_) * 16),
      pool_(&pool) {
  if (sumCount_ == 0) return;
  if (threads_ > 1)
    partsOfSegment_ = std::min(loop.rowsOfSegment, (int64_t(threads_) * 4 + segments - 1) / segments);
  parts_ = segments * partsOfSegment_;
  direct_ = partsOfSegment_ == 1 && !loop.bf16;
  if (!direct_) partials_.resize(size_t(parts_ * sumCount_ * loop.features));
}

void LoopOnThreads::run() {
  const auto task = [](void* self, int64_t index) { static_cast<LoopOnThreads*>(self)->part(index); };
  pool_->run(parts_, threads_, task, this);
  if (direct_) return;
  for (int64_t segment = 0; segment < segments_; ++segment)
    for (int k = 0; k < sumCount_; ++k) fold(segment, k);
}

void LoopOnThreads::part(int64_t index) {
  float* sums[2] = {};
  int64_t from = index, parts = parts_, first = 0, rows = loop_.rowsOfSegment * segments_;
  if (sumCount_) {
    from = index % partsOfSegment_;
    parts = partsOfSegment_;
    first = index / partsOfSegment_ * loop_.rowsOfSegment;
    rows = loop_.rowsOfSegment;
    for (int k = 0; k < sumCount_; ++k) std::fill_n(sums[k] = partial(index, k), loop_.features, 0.f);
  }
  const int64_t begin = rows * from / parts, end = rows * (from + 1) / parts;
  runRows(loop_, first + begin, end - begin, sums);
}

float* LoopOnThreads::partial(int64_t part, int k) {
  if (direct_) return static_cast<float*>(sums_[size_t(k)]) + part * loop_.features;
  return partials_.data() + (part * sumCount_ + k) * loop_.features;
}

void LoopOnThreads::fold(int64_t segment, int k) {
  const int64_t first = segment * partsOfSegment_;
  float* const sum = partial(first, k);
  for (int64_t part = first + 1; part < first + partsOfSegment_; ++part) {
    const float* const other = partial(part, k);
    for (int64_t i = 0; i < loop_.features; ++i) sum[i] += other[i];
  }
  char* const to = static_cast<char*>(sums_[size_t(k)]) + segment * loop_.features * (loop_.bf16 ? 2 : 4);
  measure::store({sum, sum + loop_.features}, loop_.bf16 ? DType::BF16 : DType::F32, to);
}

}  // namespace normc::bench::apart
