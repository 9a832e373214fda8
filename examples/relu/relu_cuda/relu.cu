// For NVIDIA's GPUs, and, translated to HIP, for AMD's.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstdint>

#include "relu_kernels.h"

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 65536;

// So many elements as one load or store moves.
template <typename scalar_t, int kWidth>
struct alignas(sizeof(scalar_t) * kWidth) Pack {
  scalar_t value[kWidth];
};

// value where gate is positive (or NaN), else 0.
template <typename scalar_t>
__device__ scalar_t select(scalar_t gate, scalar_t value) {
  using opmath_t = at::opmath_type<scalar_t>;
  return static_cast<opmath_t>(gate) <= opmath_t(0) ? scalar_t(0) : value;
}

template <typename scalar_t, int kWidth>
__global__ void select_all(
    const scalar_t* gate, const scalar_t* value, scalar_t* result, int64_t count) {
  using P = Pack<scalar_t, kWidth>;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t packs = count / kWidth;
  for (int64_t i = first; i < packs; i += step) {
    const P g = reinterpret_cast<const P*>(gate)[i];
    P v = reinterpret_cast<const P*>(value)[i];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      v.value[k] = select(g.value[k], v.value[k]);
    }
    reinterpret_cast<P*>(result)[i] = v;
  }
  // What is left when the count is not a multiple of the width.
  for (int64_t i = packs * kWidth + first; i < count; i += step) {
    result[i] = select(gate[i], value[i]);
  }
}

template <typename scalar_t, int kWidth>
void launch(const scalar_t* gate, const scalar_t* value, scalar_t* result, int64_t count) {
  const int64_t wanted = (count / kWidth + kThreads - 1) / kThreads;
  const int64_t blocks = std::min(std::max<int64_t>(wanted, 1), kMaxBlocks);
  select_all<scalar_t, kWidth>
      <<<blocks, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(gate, value, result, count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// 16 bytes at a time where all three start at a multiple of 16 bytes.
void select_on_device(
    const at::Tensor& gate, const at::Tensor& value, const at::Tensor& result) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gate.scalar_type(), "relu", [&] {
    const scalar_t* g = gate.const_data_ptr<scalar_t>();
    const scalar_t* v = value.const_data_ptr<scalar_t>();
    scalar_t* r = result.mutable_data_ptr<scalar_t>();
    const uintptr_t addresses = reinterpret_cast<uintptr_t>(g) | reinterpret_cast<uintptr_t>(v) |
        reinterpret_cast<uintptr_t>(r);
    if (addresses % 16 == 0) {
      launch<scalar_t, 16 / sizeof(scalar_t)>(g, v, r, gate.numel());
    } else {
      launch<scalar_t, 1>(g, v, r, gate.numel());
    }
  });
}

}  // namespace

void relu_kernel(const at::Tensor& input, const at::Tensor& output) {
  select_on_device(input, input, output);
}

void relu_backward_kernel(
    const at::Tensor& grad, const at::Tensor& output, const at::Tensor& grad_input) {
  select_on_device(output, grad, grad_input);
}
