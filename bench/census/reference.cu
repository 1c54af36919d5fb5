// The jobs of our kernels, written by hand in CUDA C++ for nvcc to compile: what bench/census compares with.
// Rows have known lengths and are aligned, each thread keeps its part of a row in registers, and all accesses
// have 16 bytes, as in the defaults for these sizes.
#include <cuda_bf16.h>

#include <cstdint>

using bf16 = __nv_bfloat16;

template <typename T>
struct alignas(16) Vector {
  static constexpr int kLanes = 16 / sizeof(T);
  T lane[kLanes];
};

__device__ float wide(float x) { return x; }
__device__ float wide(bf16 x) { return __bfloat162float(x); }
__device__ void narrow(float x, float& to) { to = x; }
__device__ void narrow(float x, bf16& to) { to = __float2bfloat16_rn(x); }

template <typename T>
__device__ const Vector<T>& vectorAt(const T* p) {
  return *reinterpret_cast<const Vector<T>*>(p);
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

/// y = (x - mean) * rstd * scale + bias; without CENTERED RMSNorm.
template <typename T, int N, int TEAM, int THREADS, bool CENTERED>
__device__ void forward(const T* x, const float* scale, const float* bias, T* y, float* mean, float* rstd,
                        int64_t rows, float epsilon) {
  constexpr int kLanes = Vector<T>::kLanes, kVectors = N / (TEAM * kLanes);
  __shared__ float parts[2][2][32];
  const int thread = threadIdx.x % TEAM;
  int turn = 0;
  for (int64_t row = blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM; row < rows;
       row += gridDim.x * (THREADS / TEAM), turn ^= 1) {
    Vector<T> in[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) in[v] = vectorAt(x + row * N + (v * TEAM + thread) * kLanes);
    float center[1] = {0}, square[1] = {0};
    if (CENTERED) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v)
#pragma unroll
        for (int i = 0; i < kLanes; ++i) center[0] += wide(in[v].lane[i]);
      sum<TEAM>(center, parts[turn][0]);
      center[0] /= N;
    }
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const float d = wide(in[v].lane[i]) - center[0];
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
      Vector<T> out;
#pragma unroll
      for (int quarter = 0; quarter < kLanes; quarter += 4) {
        const float4 s = *reinterpret_cast<const float4*>(scale + first + quarter);
        float4 b = make_float4(0, 0, 0, 0);
        if (CENTERED) b = *reinterpret_cast<const float4*>(bias + first + quarter);
        const float ss[4] = {s.x, s.y, s.z, s.w}, bb[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (int i = 0; i < 4; ++i)
          narrow(fmaf((wide(in[v].lane[quarter + i]) - center[0]) * r, ss[i], bb[i]), out.lane[quarter + i]);
      }
      *reinterpret_cast<Vector<T>*>(y + row * N + first) = out;
    }
  }
}

/// dx, and each block's part of dscale and dbias, which stay in registers.
template <typename T, int N, int TEAM, bool CENTERED>
__device__ void backward(const T* dy, const T* x, const float* scale, const float* mean, const float* rstd,
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
    Vector<T> given[kVectors], in[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      given[v] = vectorAt(dy + row * N + (v * TEAM + thread) * kLanes);
      in[v] = vectorAt(x + row * N + (v * TEAM + thread) * kLanes);
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
        narrow(r * fmaf(-normalized, sums[0] / N, rest), out.lane[i]);
      }
      *reinterpret_cast<Vector<T>*>(dx + row * N + (v * TEAM + thread) * kLanes) = out;
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

/// PowerNorm: y = x * factor + bias with the running statistic, and the sum of squares of each feature.
template <typename T, int ROWS>
__device__ void stream(const T* x, const float* factor, const float* bias, T* y, float* squares, int64_t rows,
                       int64_t features) {
  constexpr int kLanes = Vector<T>::kLanes;
  const int lane = threadIdx.x % 32, team = threadIdx.x / 32, teams = blockDim.x / 32;
  const int64_t column = (int64_t(blockIdx.y) * 32 + lane) * kLanes;
  float f[kLanes], b[kLanes], squared[kLanes] = {};
#pragma unroll
  for (int i = 0; i < kLanes; ++i) f[i] = factor[column + i], b[i] = bias[column + i];
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
        const float v = wide(in[r].lane[i]);
        squared[i] = fmaf(v, v, squared[i]);
        narrow(fmaf(v, f[i], b[i]), out.lane[i]);
      }
      *reinterpret_cast<Vector<T>*>(y + (row + r) * features + column) = out;
    }
  }
#pragma unroll
  for (int i = 0; i < kLanes; ++i) squares[(int64_t(blockIdx.x) * teams + team) * features + column + i] = squared[i];
}

#define FORWARD(NAME, T, N, TEAM, THREADS, CENTERED)                                                            \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                         \
      NAME(const T* __restrict__ x, const float* __restrict__ scale, const float* __restrict__ bias,            \
           T* __restrict__ y, float* __restrict__ mean, float* __restrict__ rstd, int64_t rows, float epsilon) { \
    forward<T, N, TEAM, THREADS, CENTERED>(x, scale, bias, y, mean, rstd, rows, epsilon);                       \
  }
FORWARD(layer_norm_forward_f32_1024, float, 1024, 32, 128, true)
FORWARD(layer_norm_forward_bf16_1024, bf16, 1024, 32, 128, true)
FORWARD(layer_norm_forward_f32_4096, float, 4096, 256, 256, true)
FORWARD(layer_norm_forward_bf16_4096, bf16, 4096, 128, 128, true)
FORWARD(rms_norm_forward_f32_1024, float, 1024, 32, 128, false)
FORWARD(rms_norm_forward_bf16_1024, bf16, 1024, 32, 128, false)
FORWARD(rms_norm_forward_f32_4096, float, 4096, 256, 256, false)
FORWARD(rms_norm_forward_bf16_4096, bf16, 4096, 128, 128, false)

#define BACKWARD(NAME, T, N, TEAM, CENTERED)                                                                    \
  extern "C" __global__ void __launch_bounds__(TEAM)                                                            \
      NAME(const T* __restrict__ dy, const T* __restrict__ x, const float* __restrict__ scale,                  \
           const float* __restrict__ mean, const float* __restrict__ rstd, T* __restrict__ dx,                  \
           float* __restrict__ dscale, float* __restrict__ dbias, int64_t rows) {                               \
    backward<T, N, TEAM, CENTERED>(dy, x, scale, mean, rstd, dx, dscale, dbias, rows);                          \
  }
BACKWARD(layer_norm_backward_f32_1024, float, 1024, 128, true)
BACKWARD(layer_norm_backward_bf16_1024, bf16, 1024, 64, true)
BACKWARD(layer_norm_backward_f32_4096, float, 4096, 512, true)
BACKWARD(layer_norm_backward_bf16_4096, bf16, 4096, 256, true)
BACKWARD(rms_norm_backward_f32_4096, float, 4096, 512, false)
BACKWARD(rms_norm_backward_bf16_4096, bf16, 4096, 256, false)

#define STREAM(NAME, T)                                                                                        \
  extern "C" __global__ void __launch_bounds__(512)                                                            \
      NAME(const T* __restrict__ x, const float* __restrict__ factor, const float* __restrict__ bias,          \
           T* __restrict__ y, float* __restrict__ squares, int64_t rows, int64_t features) {                   \
    stream<T, 4>(x, factor, bias, y, squares, rows, features);                                                 \
  }
STREAM(power_norm_forward_f32_1024, float)
STREAM(power_norm_forward_bf16_1024, bf16)
