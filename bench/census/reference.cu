// The jobs of our kernels, written by hand in CUDA C++ for nvcc to compile: what bench/census compares with.
// Rows have known lengths and are aligned, each thread keeps its part of a row in registers, and all accesses
// have 16 bytes, as in the defaults for these sizes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

using bf16 = __nv_bfloat16;
using f16 = __half;

template <typename T>
struct alignas(16) Vector {
  static constexpr int kLanes = 16 / sizeof(T);
  T lane[kLanes];
};

__device__ float wide(float x) { return x; }
__device__ float wide(bf16 x) { return __bfloat162float(x); }
__device__ float wide(f16 x) { return __half2float(x); }
__device__ void narrow(float x, float& to) { to = x; }
__device__ void narrow(float x, bf16& to) { to = __float2bfloat16_rn(x); }
__device__ void narrow(float x, f16& to) { to = __float2half_rn(x); }

__device__ float silu(float t) { return __fdividef(t, 1 + __expf(-t)); }

/// Loads and stores of 16 bytes.
template <typename T>
__device__ Vector<T> vectorAt(const T* p) {
  const uint4 words = *reinterpret_cast<const uint4*>(p);
  return *reinterpret_cast<const Vector<T>*>(&words);
}
template <typename T>
__device__ void store(T* p, const Vector<T>& value) {
  __stwb(reinterpret_cast<uint4*>(p), *reinterpret_cast<const uint4*>(&value));  // an assignment may be split
}

/// Sums over the team of threads that has a row. `parts` has a place for each warp; two take turns, so that one
/// barrier a sum is enough.
template <int TEAM, int SUMS>
__device__ void sum(float (&value)[SUMS], float* parts) {
#pragma unroll
  for (int s = 0; s < SUMS; ++s)
#pragma unroll
    for (int lane = 16; lane; lane /= 2) value[s] += __shfl_xor_sync(~0u, value[s], lane);
  if constexpr (TEAM > 32) {
    constexpr int kWarps = TEAM / 32;
    if (threadIdx.x % 32 == 0)
#pragma unroll
      for (int s = 0; s < SUMS; ++s) parts[s * kWarps + threadIdx.x / 32] = value[s];
    __syncthreads();
#pragma unroll
    for (int s = 0; s < SUMS; ++s) {
      value[s] = 0;
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) value[s] += parts[s * kWarps + warp];
    }
  }
}

/// What a second input of the rows does.
enum class Second {
  None,
  Residual,  ///< x + residual takes the place of x, and is stored as well
  Gate,      ///< y is multiplied by silu(gate)
};

/// y = (x - mean) * rstd * scale + bias; without CENTERED RMSNorm.
template <typename T, int N, int TEAM, int THREADS, bool CENTERED, Second SECOND>
__device__ void forward(const T* x, const T* second, const float* scale, const float* bias, T* y, T* residualOut,
                        float* mean, float* rstd, int64_t rows, float epsilon) {
  constexpr bool RESIDUAL = SECOND == Second::Residual, GATE = SECOND == Second::Gate;
  constexpr int kLanes = Vector<T>::kLanes, kVectors = N / (TEAM * kLanes);
  __shared__ float parts[2][2][32];
  const int thread = threadIdx.x % TEAM;
  int turn = 0;
  for (int64_t row = blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM; row < rows;
       row += gridDim.x * (THREADS / TEAM), turn ^= 1) {
    Vector<T> in[kVectors], beside[SECOND == Second::None ? 1 : kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      in[v] = vectorAt(x + row * N + (v * TEAM + thread) * kLanes);
      if (SECOND != Second::None) beside[v] = vectorAt(second + row * N + (v * TEAM + thread) * kLanes);
    }
    const auto input = [&](int v, int i) {
      return RESIDUAL ? wide(in[v].lane[i]) + wide(beside[v].lane[i]) : wide(in[v].lane[i]);
    };
    float center[1] = {0}, square[1] = {0};
    if (CENTERED) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v)
#pragma unroll
        for (int i = 0; i < kLanes; ++i) center[0] += input(v, i);
      sum<TEAM>(center, parts[turn][0]);
      center[0] /= N;
    }
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const float d = input(v, i) - center[0];
        square[0] = fmaf(d, d, square[0]);
      }
    sum<TEAM>(square, parts[turn][1]);
    const float r = rsqrtf(square[0] / N + epsilon);
    if (thread == 0) {
      if (CENTERED) mean[row] = center[0];
      rstd[row] = r;
    }
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int first = (v * TEAM + thread) * kLanes;
      Vector<T> out, total;
#pragma unroll
      for (int quarter = 0; quarter < kLanes; quarter += 4) {
        const float4 s = *reinterpret_cast<const float4*>(scale + first + quarter);
        float4 b = make_float4(0, 0, 0, 0);
        if (CENTERED) b = *reinterpret_cast<const float4*>(bias + first + quarter);
        const float ss[4] = {s.x, s.y, s.z, s.w}, bb[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float value = input(v, quarter + i), scaled = fmaf((value - center[0]) * r, ss[i], bb[i]);
          narrow(GATE ? scaled * silu(wide(beside[v].lane[quarter + i])) : scaled, out.lane[quarter + i]);
          if (RESIDUAL) narrow(value, total.lane[quarter + i]);
        }
      }
      store(y + row * N + first, out);
      if (RESIDUAL) store(residualOut + row * N + first, total);
    }
  }
}

/// dx, and each block's part of dscale and dbias, which stay in registers. With RESIDUAL x is the sum that forward
/// stored, and what comes from its other reader is added.
template <typename T, int N, int TEAM, bool CENTERED, bool RESIDUAL>
__device__ void backward(const T* dy, const T* x, const T* dresidualOut, const float* scale, const float* mean, const float* rstd,
                         T* dx, float* dscale, float* dbias, int64_t rows) {
  constexpr int kLanes = Vector<T>::kLanes, kVectors = N / (TEAM * kLanes), kSums = CENTERED ? 2 : 1;
  __shared__ float parts[2][kSums * 32];
  const int thread = threadIdx.x % TEAM;
  float s[kVectors][kLanes], ds[kVectors][kLanes] = {}, db[kVectors][kLanes] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
#pragma unroll
    for (int i = 0; i < kLanes; ++i) s[v][i] = scale[(v * TEAM + thread) * kLanes + i];
  int turn = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    Vector<T> given[kVectors], in[kVectors], further[RESIDUAL ? kVectors : 1];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      given[v] = vectorAt(dy + row * N + (v * TEAM + thread) * kLanes);
      in[v] = vectorAt(x + row * N + (v * TEAM + thread) * kLanes);
      if (RESIDUAL) further[v] = vectorAt(dresidualOut + row * N + (v * TEAM + thread) * kLanes);
    }
    const float m = CENTERED ? mean[row] : 0, r = rstd[row];
    float sums[kSums] = {};
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const float g = wide(given[v].lane[i]), normalized = (wide(in[v].lane[i]) - m) * r, scaled = g * s[v][i];
        sums[0] = fmaf(scaled, normalized, sums[0]);
        if (CENTERED) sums[kSums - 1] += scaled;
        ds[v][i] = fmaf(g, normalized, ds[v][i]);
        if (CENTERED) db[v][i] += g;
      }
    sum<TEAM>(sums, parts[turn]);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      Vector<T> out;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const float normalized = (wide(in[v].lane[i]) - m) * r, scaled = wide(given[v].lane[i]) * s[v][i];
        const float rest = CENTERED ? scaled - sums[kSums - 1] / N : scaled;
        float value = r * fmaf(-normalized, sums[0] / N, rest);
        if (RESIDUAL) value += wide(further[v].lane[i]);
        narrow(value, out.lane[i]);
      }
      store(dx + row * N + (v * TEAM + thread) * kLanes, out);
    }
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      dscale[int64_t(blockIdx.x) * N + (v * TEAM + thread) * kLanes + i] = ds[v][i];
      if (CENTERED) dbias[int64_t(blockIdx.x) * N + (v * TEAM + thread) * kLanes + i] = db[v][i];
    }
}

/// What a stream of columns does with each row.
enum class Stream {
  Statistics,   ///< sums the squares: PN-V
  Moments,      ///< sums x - shift and its squares: BatchNorm
  Apply,        ///< y = x * factor + bias
  ApplyAndSum,  ///< both: PowerNorm, whose factor is known beforehand
};

template <typename T, int ROWS, Stream DOES>
__device__ void stream(const T* x, const float* factor, const float* bias, const float* shift, T* y, float* sums,
                       float* squares, int64_t rows, int64_t features) {
  constexpr bool kStores = DOES == Stream::Apply || DOES == Stream::ApplyAndSum, kSums = DOES != Stream::Apply;
  constexpr bool kMoments = DOES == Stream::Moments;
  constexpr int kLanes = Vector<T>::kLanes;
  const int lane = threadIdx.x % 32, team = threadIdx.x / 32, teams = blockDim.x / 32;
  const int64_t column = (int64_t(blockIdx.y) * 32 + lane) * kLanes;
  float f[kLanes], b[kLanes], s[kLanes], sum[kLanes] = {}, squared[kLanes] = {};
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    if (kStores) {
      f[i] = factor[column + i];
      b[i] = bias[column + i];
    }
    s[i] = kMoments ? shift[column + i] : 0;
  }
  for (int64_t row = (int64_t(blockIdx.x) * teams + team) * ROWS; row < rows;
       row += int64_t(gridDim.x) * teams * ROWS) {
    Vector<T> in[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) in[r] = vectorAt(x + (row + r) * features + column);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      Vector<T> out;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const float v = wide(in[r].lane[i]), d = kMoments ? v - s[i] : v;
        if (kSums) squared[i] = fmaf(d, d, squared[i]);
        if (kMoments) sum[i] += d;
        if (kStores) narrow(fmaf(v, f[i], b[i]), out.lane[i]);
      }
      if (kStores) store(y + (row + r) * features + column, out);
    }
  }
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    const int64_t place = (int64_t(blockIdx.x) * teams + team) * features + column + i;
    if (kSums) squares[place] = squared[i];
    if (kMoments) sums[place] = sum[i];
  }
}

/// PowerNorm as it was released, after its warmup: a warp has a head, scales it by its root mean square, applies the
/// running statistic, and sums the squares of what it has scaled.
template <typename T, int HEAD>
__device__ void released(const T* x, const float* factor, const float* bias, T* y, float* squares, int64_t rows,
                         int64_t features, float epsilon) {
  constexpr int kLanes = Vector<T>::kLanes, kVectors = HEAD / (32 * kLanes);
  const int lane = threadIdx.x % 32;
  const int64_t first = int64_t(threadIdx.x / 32) * HEAD;
  float f[kVectors][kLanes], b[kVectors][kLanes], squared[kVectors][kLanes] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      const int64_t column = first + (v * 32 + lane) * kLanes + i;
      f[v][i] = factor[column];
      b[v][i] = bias[column];
    }
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    Vector<T> in[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) in[v] = vectorAt(x + row * features + first + (v * 32 + lane) * kLanes);
    float square[1] = {0};
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
#pragma unroll
      for (int i = 0; i < kLanes; ++i) square[0] = fmaf(wide(in[v].lane[i]), wide(in[v].lane[i]), square[0]);
    sum<32>(square, nullptr);
    const float r = rsqrtf(square[0] / HEAD + epsilon);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      Vector<T> out;
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const float scaled = wide(in[v].lane[i]) * r;
        squared[v][i] = fmaf(scaled, scaled, squared[v][i]);
        narrow(fmaf(scaled, f[v][i], b[v][i]), out.lane[i]);
      }
      store(y + row * features + first + (v * 32 + lane) * kLanes, out);
    }
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
#pragma unroll
    for (int i = 0; i < kLanes; ++i)
      squares[blockIdx.x * features + first + (v * 32 + lane) * kLanes + i] = squared[v][i];
}

/// Sums over the teams of a block, of which each has the same columns. `parts` has a place for each warp and column.
template <int TEAM, int THREADS, int LANES>
__device__ void sumOverTeams(float (&value)[LANES], float (*parts)[TEAM * LANES]) {
  const int lane = threadIdx.x % TEAM;
#pragma unroll
  for (int i = 0; i < LANES; ++i)
#pragma unroll
    for (int step = 16; step >= TEAM; step /= 2) value[i] += __shfl_xor_sync(~0u, value[i], step);
  if (threadIdx.x % 32 < TEAM)
#pragma unroll
    for (int i = 0; i < LANES; ++i) parts[threadIdx.x / 32][lane * LANES + i] = value[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < LANES; ++i) {
    value[i] = 0;
#pragma unroll
    for (int warp = 0; warp < THREADS / 32; ++warp) value[i] += parts[warp][lane * LANES + i];
  }
}

/// BatchNorm of columns that a block holds: all rows are in registers up to HOLD for each thread, and later ones are
/// read again. Each thread has 16 bytes of a row.
template <typename T, int TEAM, int THREADS, int HOLD>
__device__ void held(const T* x, const float* scale, const float* bias, const float* runningMean, const float* runningVar,
                     T* y, float* mean, float* rstd, float* newMean, float* newVar, int64_t rows, int64_t features,
                     float epsilon, float decay) {
  constexpr int kLanes = Vector<T>::kLanes, kTeams = THREADS / TEAM;
  __shared__ float parts[2][THREADS / 32][TEAM * kLanes];
  const int64_t first = threadIdx.x / TEAM, column = (int64_t(blockIdx.x) * TEAM + threadIdx.x % TEAM) * kLanes;
  const auto at = [&](int64_t row) { return row * features + column; };
  Vector<T> in[HOLD];
  float center[kLanes] = {}, square[kLanes] = {}, f[kLanes], b[kLanes];
#pragma unroll
  for (int h = 0; h < HOLD; ++h)
    if (first + h * kTeams < rows) in[h] = vectorAt(x + at(first + h * kTeams));
  const auto forAll = [&](auto take) {
#pragma unroll
    for (int h = 0; h < HOLD; ++h)
      if (first + h * kTeams < rows) take(in[h], first + h * kTeams);
    for (int64_t row = first + HOLD * kTeams; row < rows; row += kTeams) take(vectorAt(x + at(row)), row);
  };
  forAll([&](const Vector<T>& v, int64_t) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) center[i] += wide(v.lane[i]);
  });
  sumOverTeams<TEAM, THREADS>(center, parts[0]);
#pragma unroll
  for (int i = 0; i < kLanes; ++i) center[i] /= rows;
  forAll([&](const Vector<T>& v, int64_t) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      const float d = wide(v.lane[i]) - center[i];
      square[i] = fmaf(d, d, square[i]);
    }
  });
  sumOverTeams<TEAM, THREADS>(square, parts[1]);
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
    const float var = square[i] / rows, r = rsqrtf(var + epsilon);
    f[i] = r * scale[column + i];
    b[i] = bias[column + i];
    if (first == 0) {
      mean[column + i] = center[i];
      rstd[column + i] = r;
      newMean[column + i] = decay * runningMean[column + i] + (1 - decay) * center[i];
      newVar[column + i] = decay * runningVar[column + i] + (1 - decay) * var;
    }
  }
  forAll([&](const Vector<T>& v, int64_t row) {
    Vector<T> out;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) narrow(fmaf(wide(v.lane[i]) - center[i], f[i], b[i]), out.lane[i]);
    store(y + at(row), out);
  });
}

// Names are what bench/census looks for: NORM_ENTRY_PHASE_TYPE_FEATURES, without the phase where it is `apply`; `held`
// is apply of columns on chip.
#define FORWARD(NAME, T, N, TEAM, THREADS, CENTERED, SECOND)                                                      \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                           \
      NAME(const T* __restrict__ x, const T* __restrict__ second, const float* __restrict__ scale,              \
           const float* __restrict__ bias, T* __restrict__ y, T* __restrict__ residualOut,                        \
           float* __restrict__ mean, float* __restrict__ rstd, int64_t rows, float epsilon) {                     \
    forward<T, N, TEAM, THREADS, CENTERED, Second::SECOND>(x, second, scale, bias, y, residualOut, mean, rstd, rows, \
                                                     epsilon);                                                    \
  }
FORWARD(layer_norm_forward_f32_1024, float, 1024, 32, 128, true, None)
FORWARD(layer_norm_forward_bf16_1024, bf16, 1024, 32, 128, true, None)
FORWARD(layer_norm_forward_f32_4096, float, 4096, 256, 256, true, None)
FORWARD(layer_norm_forward_bf16_4096, bf16, 4096, 128, 128, true, None)
FORWARD(layer_norm_forward_f16_4096, f16, 4096, 128, 128, true, None)
FORWARD(rms_norm_forward_f32_1024, float, 1024, 32, 128, false, None)
FORWARD(rms_norm_forward_bf16_1024, bf16, 1024, 32, 128, false, None)
FORWARD(rms_norm_forward_f32_4096, float, 4096, 256, 256, false, None)
FORWARD(rms_norm_forward_bf16_4096, bf16, 4096, 128, 128, false, None)
FORWARD(layer_norm_residual_forward_bf16_1024, bf16, 1024, 32, 128, true, Residual)
FORWARD(rms_norm_residual_forward_f32_4096, float, 4096, 256, 256, false, Residual)
FORWARD(rms_norm_residual_forward_bf16_4096, bf16, 4096, 128, 128, false, Residual)
FORWARD(delta_gated_rms_norm_forward_f32_4096, float, 4096, 256, 256, false, Gate)
FORWARD(delta_gated_rms_norm_forward_bf16_4096, bf16, 4096, 128, 128, false, Gate)

#define BACKWARD(NAME, T, N, TEAM, CENTERED, RESIDUAL)                                                           \
  extern "C" __global__ void __launch_bounds__(TEAM)                                                             \
      NAME(const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ dresidualOut,                \
           const float* __restrict__ scale, const float* __restrict__ mean, const float* __restrict__ rstd,      \
           T* __restrict__ dx, float* __restrict__ dscale, float* __restrict__ dbias, int64_t rows) {            \
    backward<T, N, TEAM, CENTERED, RESIDUAL>(dy, x, dresidualOut, scale, mean, rstd, dx, dscale, dbias, rows); \
  }
BACKWARD(layer_norm_backward_f32_1024, float, 1024, 128, true, false)
BACKWARD(layer_norm_backward_bf16_1024, bf16, 1024, 64, true, false)
BACKWARD(layer_norm_backward_f32_4096, float, 4096, 512, true, false)
BACKWARD(layer_norm_backward_bf16_4096, bf16, 4096, 256, true, false)
BACKWARD(rms_norm_backward_f32_4096, float, 4096, 512, false, false)
BACKWARD(rms_norm_backward_bf16_4096, bf16, 4096, 256, false, false)
BACKWARD(rms_norm_backward_f16_4096, f16, 4096, 256, false, false)
BACKWARD(layer_norm_residual_backward_bf16_1024, bf16, 1024, 64, true, true)
BACKWARD(rms_norm_residual_backward_f32_4096, float, 4096, 512, false, true)
BACKWARD(rms_norm_residual_backward_bf16_4096, bf16, 4096, 256, false, true)

#define STREAM(NAME, T, DOES)                                                                                   \
  extern "C" __global__ void __launch_bounds__(512)                                                             \
      NAME(const T* __restrict__ x, const float* __restrict__ factor, const float* __restrict__ bias,           \
           const float* __restrict__ shift, T* __restrict__ y, float* __restrict__ sums,                        \
           float* __restrict__ squares, int64_t rows, int64_t features) {                                       \
    stream<T, 4, Stream::DOES>(x, factor, bias, shift, y, sums, squares, rows, features);                       \
  }
STREAM(power_norm_forward_f32_1024, float, ApplyAndSum)
STREAM(power_norm_forward_bf16_1024, bf16, ApplyAndSum)
STREAM(power_norm_v_forward_statistics_f32_1024, float, Statistics)
STREAM(power_norm_v_forward_statistics_bf16_1024, bf16, Statistics)
STREAM(power_norm_v_forward_f32_1024, float, Apply)
STREAM(power_norm_v_forward_bf16_1024, bf16, Apply)
STREAM(batch_norm_forward_statistics_f32_1024, float, Moments)
STREAM(batch_norm_forward_statistics_bf16_1024, bf16, Moments)

#define RELEASED(NAME, T)                                                                                     \
  extern "C" __global__ void __launch_bounds__(128)                                                           \
      NAME(const T* __restrict__ x, const float* __restrict__ factor, const float* __restrict__ bias,         \
           T* __restrict__ y, float* __restrict__ squares, int64_t rows, int64_t features, float epsilon) {   \
    released<T, 256>(x, factor, bias, y, squares, rows, features, epsilon);                                   \
  }
RELEASED(power_norm_released_forward_f32_1024, float)
RELEASED(power_norm_released_forward_bf16_1024, bf16)

#define HELD(NAME, T, HOLD)                                                                                       \
  extern "C" __global__ void __launch_bounds__(256)                                                               \
      NAME(const T* __restrict__ x, const float* __restrict__ scale, const float* __restrict__ bias,              \
           const float* __restrict__ runningMean, const float* __restrict__ runningVar, T* __restrict__ y,        \
           float* __restrict__ mean, float* __restrict__ rstd, float* __restrict__ newMean,                       \
           float* __restrict__ newVar, int64_t rows, int64_t features, float epsilon, float decay) {              \
    held<T, 8, 256, HOLD>(x, scale, bias, runningMean, runningVar, y, mean, rstd, newMean, newVar, rows, features, \
                          epsilon, decay);                                                                        \
  }
HELD(batch_norm_forward_held_f32_1024, float, 8)
HELD(batch_norm_forward_held_bf16_1024, bf16, 8)
