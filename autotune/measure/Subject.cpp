#include "autotune/measure/Subject.h"

namespace normc::measure {

Subject::Subject(host::Plan plan, const Buffers& buffers, const Extents& extents, Contestant* reader,
                 const gate::CudaDevice* device)
    : plan_(std::move(plan)), reader_(reader) {
  const normc_sizes sizes = host::Plan::sizes(extents.segments, extents.rows, extents.features);
  const size_t bytes = plan_.workspaceBytes(sizes);
  if (bytes) workspace_ = Held(Memory(int64_t(bytes)), device);
  for (int set = 0; set < buffers.sets(); ++set) {
    calls_.push_back(buffers.call(set));
    if (bytes) calls_.back().workspace = host::Buffer(workspace_.data(), bytes);
  }
}

double Subject::run(int64_t calls) {
  return timed(calls, [this] {
    plan_(calls_[next_]);
    if (++next_ == calls_.size()) next_ = 0;
    if (reader_) reader_->run(1);
  });
}

}  // namespace normc::measure
