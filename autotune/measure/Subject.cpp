#include "autotune/measure/Subject.h"

namespace normc::measure {

Subject::Subject(host::Plan plan, const Buffers& buffers, Contestant* reader)
    : plan_(std::move(plan)), reader_(reader) {
  const size_t bytes = plan_.workspaceBytes(buffers.sizes());
  if (bytes) workspace_ = Held::ofBytes(int64_t(bytes), buffers.device());
  for (int set = 0; set < buffers.sets(); ++set) {
    normc_args args = buffers.args(set);
    args.workspace = workspace_.data();
    args.workspace_bytes = bytes;
    calls_.push_back(args);
  }
}

double Subject::run(int64_t calls) {
  return timed(calls, [this] {
    call(next_);
    if (++next_ == int(calls_.size())) next_ = 0;
    if (reader_) reader_->run(1);
  });
}

}  // namespace normc::measure
