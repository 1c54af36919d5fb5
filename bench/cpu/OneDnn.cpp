#include "bench/cpu/OneDnn.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#ifdef NORMC_BENCH_ONEDNN
#include "oneapi/dnnl/dnnl.hpp"

extern "C" void omp_set_num_threads(int);  // of the OpenMP library that oneDNN brings

namespace normc::bench {
namespace {

using Md = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Flags = dnnl::normalization_flags;

dnnl::memory::data_type typeOf(DType type) {
  switch (type) {
    case DType::F32:
      return dnnl::memory::data_type::f32;
    case DType::BF16:
      return dnnl::memory::data_type::bf16;
    case DType::F16:
      return dnnl::memory::data_type::f16;
    case DType::F64:
      return dnnl::memory::data_type::f64;
    default:
      break;  // no tensor of numbers
  }
  return dnnl::memory::data_type::undef;
}

/// One primitive with all its memory.
class OneDnn : public Contestant {
 public:
  OneDnn(Tensors& tensors, int threads) : tensors_(tensors), threads_(threads) {
    omp_set_num_threads(threads);
  }

  double run(int64_t calls) override {
    omp_set_num_threads(threads_);
    return timed(calls, [this] {
      primitive_.execute(stream_, arguments_);
      stream_.wait();
    });
  }
  bool spins() const override { return threads_ > 1; }
  std::string implementation() const override { return implementation_; }

  void layerNorm(Entry entry, float epsilon) {
    const int64_t rows = tensors_.shape.totalRows();
    const Md wide({rows, tensors_.shape.features}, typeOf(tensors_.data), Tag::ab);
    const Md perRow({rows}, dnnl::memory::data_type::f32, Tag::a);
    const Flags flags = Flags::use_scale | Flags::use_shift;
    const auto kind =
        entry == Entry::Infer ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
    const dnnl::layer_normalization_forward::primitive_desc forward(engine_, kind, wide, wide, perRow,
                                                                    epsilon, flags, attributes());
    bindForward(forward, entry != Entry::Infer);
    primitive_ = dnnl::layer_normalization_forward(forward);
    implementation_ = forward.impl_info_str();
    if (entry != Entry::Backward) return;
    run(1);  // mean and variance
    const dnnl::layer_normalization_backward::primitive_desc backward(
        engine_, dnnl::prop_kind::backward, wide, wide, wide, perRow, epsilon, flags, forward, attributes());
    bindBackward(backward);
    primitive_ = dnnl::layer_normalization_backward(backward);
    implementation_ = backward.impl_info_str();
  }

  /// `shape`: segments, rows and features as oneDNN's four dimensions, channels second.
  void batchNorm(Entry entry, float epsilon, const dnnl::memory::dims& shape) {
    const bool first = tensors_.shape.layout == Layout::ChannelsFirst;
    const Md wide(shape, typeOf(tensors_.data), first ? Tag::nchw : Tag::nhwc);
    Flags flags = Flags::use_scale | Flags::use_shift;
    if (!usesSaved(entry)) flags = flags | Flags::use_global_stats;
    const auto kind =
        entry == Entry::Infer ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
    const dnnl::batch_normalization_forward::primitive_desc forward(engine_, kind, wide, wide, epsilon, flags,
                                                                    attributes());
    bindForward(forward, true);
    primitive_ = dnnl::batch_normalization_forward(forward);
    implementation_ = forward.impl_info_str();
    if (!isBackward(entry)) return;
    run(1);
    const dnnl::batch_normalization_backward::primitive_desc backward(
        engine_, dnnl::prop_kind::backward, wide, wide, wide, epsilon, flags, forward, attributes());
    bindBackward(backward);
    arguments_.erase(DNNL_ARG_SHIFT);  // refused here, required by layer normalization
    primitive_ = dnnl::batch_normalization_backward(backward);
    implementation_ = backward.impl_info_str();
  }

 private:
  static dnnl::primitive_attr attributes() {
    dnnl::primitive_attr result;
    result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return result;
  }
  void bind(int argument, const Md& description, void* data) {
    arguments_[argument] = dnnl::memory(description, engine_, data);
  }
  /// Memory of the contestant's own, filled with ones: a legal variance.
  void own(int argument, const Md& description) {
    dnnl::memory memory(description, engine_);
    if (description.get_data_type() == dnnl::memory::data_type::f32)
      std::fill_n(static_cast<float*>(memory.get_data_handle()), description.get_size() / sizeof(float), 1.f);
    arguments_[argument] = memory;
  }
  template <typename Description>
  void bindForward(const Description& forward, bool statistics) {
    void* const y = tensors_.output().data();
    bind(DNNL_ARG_SRC, forward.src_desc(), tensors_[kX]);
    bind(DNNL_ARG_DST, forward.dst_desc(), y);
    bind(DNNL_ARG_SCALE, forward.weights_desc(), tensors_[kScale]);
    bind(DNNL_ARG_SHIFT, forward.weights_desc(), tensors_[kBias]);
    if (statistics) {
      own(DNNL_ARG_MEAN, forward.mean_desc());
      own(DNNL_ARG_VARIANCE, forward.variance_desc());
    }
    own(DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc());
  }
  template <typename Description>
  void bindBackward(const Description& backward) {
    bind(DNNL_ARG_DIFF_DST, backward.diff_dst_desc(), tensors_[kDy]);
    bind(DNNL_ARG_DIFF_SRC, backward.diff_src_desc(), tensors_[kDx]);
    bind(DNNL_ARG_DIFF_SCALE, backward.diff_weights_desc(), tensors_[kDscale]);
    bind(DNNL_ARG_DIFF_SHIFT, backward.diff_weights_desc(), tensors_[kDbias]);
    own(DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc());
  }

  Tensors& tensors_;
  int threads_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive primitive_;
  std::string implementation_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

/// Returns the faster of two layouts: without segments rows may be the batch or the height of oneDNN's
/// tensor.
std::unique_ptr<Contestant> fasterBatchNorm(const Problem& problem, Tensors& tensors, int threads) {
  std::unique_ptr<Contestant> best;
  double bestSeconds = 0;
  const auto& [segments, rows, features, layout] = tensors.shape;
  std::vector<dnnl::memory::dims> shapes = {{segments, features, rows, 1}};
  if (layout == Layout::FeaturesLast) shapes.push_back({segments * rows, features, 1, 1});
  for (const dnnl::memory::dims& shape : shapes) {
    auto candidate = std::make_unique<OneDnn>(tensors, threads);
    candidate->batchNorm(problem.entry, float(problem.spec->epsilon), shape);
    candidate->run(2);
    double seconds = candidate->run(3);
    for (int i = 0; i < 4; ++i) seconds = std::min(seconds, candidate->run(3));
    if (!best || seconds < bestSeconds) {
      best = std::move(candidate);
      bestSeconds = seconds;
    }
  }
  return best;
}

}  // namespace

std::string oneDnnVersion() {
  const dnnl_version_t& version = *dnnl_version();
  return "oneDNN " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

std::unique_ptr<Contestant> makeOneDnn(const Problem& problem, Tensors& tensors, int threads,
                                       std::string& why) {
  try {
    if (problem.spec->name == "batch_norm") return fasterBatchNorm(problem, tensors, threads);
    if (problem.spec->name == "layer_norm" && problem.layout == Layout::FeaturesLast) {
      auto result = std::make_unique<OneDnn>(tensors, threads);
      result->layerNorm(problem.entry, float(problem.spec->epsilon));
      result->run(1);
      return result;
    }
    why = "has no " + problem.spec->name +
          (problem.layout == Layout::ChannelsFirst ? " with channels first" : "");
  } catch (const dnnl::error& error) {
    why = "cannot do " + problem.parts().head() + " (" + error.what() + ")";
  }
  return nullptr;
}

}  // namespace normc::bench

#else

namespace normc::bench {

std::string oneDnnVersion() { return {}; }

std::unique_ptr<Contestant> makeOneDnn(const Problem&, Tensors&, int, std::string& why) {
  why = "was not found when this was built; scripts/setup --peers installs it";
  return nullptr;
}

}  // namespace normc::bench
#endif
