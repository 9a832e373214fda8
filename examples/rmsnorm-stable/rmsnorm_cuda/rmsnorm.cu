#include <cuda_runtime.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>
#include <torch/headeronly/core/Dispatch_v2.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rmsnorm_kernels.h"

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;

template <typename T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

// So many elements as one load or store moves.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T value[kWidth];
};

// The sum over the threads of a block, given to each of them. The block is of whole warps.
template <typename C>
__device__ C block_sum(C value) {
  __shared__ C of_warp[kMaxThreads / kWarp];
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffff, value, offset);
  }
  if (threadIdx.x % kWarp == 0) {
    of_warp[threadIdx.x / kWarp] = value;
  }
  __syncthreads();
  C total = 0;
  for (int warp = 0; warp < blockDim.x / kWarp; ++warp) {
    total += of_warp[warp];
  }
  return total;
}

// A block for each row. A thread reads again only what it has written itself.
template <typename T, int kWidth, bool kAdd>
__global__ void __launch_bounds__(kMaxThreads) norm_rows(
    const T* input, const T* residual, const T* weight, T* output, T* sum, int64_t columns,
    Compute<T> eps) {
  using P = Pack<T, kWidth>;
  using C = Compute<T>;
  const int64_t packs = columns / kWidth;
  const int64_t start = blockIdx.x * packs;
  const P* x = reinterpret_cast<const P*>(input) + start;
  const P* w = reinterpret_cast<const P*>(weight);
  P* y = reinterpret_cast<P*>(output) + start;

  C squares = 0;
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    P pack = x[i];
    if constexpr (kAdd) {
      const P other = (reinterpret_cast<const P*>(residual) + start)[i];
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const C value = static_cast<C>(pack.value[k]) + static_cast<C>(other.value[k]);
        pack.value[k] = static_cast<T>(value);
      }
      (reinterpret_cast<P*>(sum) + start)[i] = pack;
    }
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const C value = static_cast<C>(pack.value[k]);
      squares += value * value;
    }
  }
  const C scale = C(1) / sqrt(block_sum(squares) / static_cast<C>(columns) + eps);

  if constexpr (kAdd) {
    x = reinterpret_cast<const P*>(sum) + start;
  }
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    P pack = x[i];
    const P factor = w[i];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const C value = static_cast<C>(pack.value[k]) * scale * static_cast<C>(factor.value[k]);
      pack.value[k] = static_cast<T>(value);
    }
    y[i] = pack;
  }
}

cudaStream_t current_stream(int32_t device) {
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
  return static_cast<cudaStream_t>(stream);
}

// The addresses of a call's data; residual and sum are null when nothing is added.
template <typename T>
struct Data {
  const T* input;
  const T* residual;
  const T* weight;
  T* output;
  T* sum;
};

template <int kWidth, bool kAdd, typename T>
void launch(const Data<T>& data, int64_t rows, int64_t columns, double eps, cudaStream_t stream) {
  const int64_t warps = (columns / kWidth + kWarp - 1) / kWarp;
  const auto threads = static_cast<unsigned>(std::min<int64_t>(warps * kWarp, kMaxThreads));
  norm_rows<T, kWidth, kAdd><<<static_cast<unsigned>(rows), threads, 0, stream>>>(
      data.input, data.residual, data.weight, data.output, data.sum, columns,
      static_cast<Compute<T>>(eps));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

template <int kWidth, typename T>
void launch_for(
    const Data<T>& data, int64_t rows, int64_t columns, double eps, cudaStream_t stream) {
  if (data.residual == nullptr) {
    launch<kWidth, false>(data, rows, columns, eps, stream);
  } else {
    launch<kWidth, true>(data, rows, columns, eps, stream);
  }
}

// Whether every row of the data starts at a multiple of 16 bytes.
template <typename T>
bool is_aligned(const Data<T>& data, int64_t columns) {
  const auto address = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  const uintptr_t all = address(data.input) | address(data.residual) | address(data.weight) |
      address(data.output) | address(data.sum) | columns * sizeof(T);
  return all % 16 == 0;
}

void norm(
    const Tensor& input, const Tensor* residual, const Tensor& weight, double eps,
    const Tensor& output, const Tensor* sum) {
  const int64_t columns = input.size(input.dim() - 1);
  const int64_t rows = input.numel() / columns;
  STD_TORCH_CHECK(rows <= INT32_MAX, "rms_norm: ", rows, " rows are more than a grid can have");
  const torch::stable::accelerator::DeviceGuard guard(input.get_device_index());
  cudaStream_t stream = current_stream(input.get_device_index());

  THO_DISPATCH_V2(
      input.scalar_type(), "rms_norm", AT_WRAP([&] {
        Data<scalar_t> data{};
        data.input = input.const_data_ptr<scalar_t>();
        data.weight = weight.const_data_ptr<scalar_t>();
        data.output = output.mutable_data_ptr<scalar_t>();
        if (residual != nullptr) {
          data.residual = residual->const_data_ptr<scalar_t>();
          data.sum = sum->mutable_data_ptr<scalar_t>();
        }
        if (is_aligned(data, columns)) {
          launch_for<16 / sizeof(scalar_t)>(data, rows, columns, eps, stream);
        } else {
          launch_for<1>(data, rows, columns, eps, stream);
        }
      }),
      AT_EXPAND(AT_FLOATING_TYPES), ScalarType::Half, ScalarType::BFloat16);
}

}  // namespace

void rms_norm_kernel(
    const Tensor& input, const Tensor& weight, double eps, const Tensor& output) {
  norm(input, nullptr, weight, eps, output, nullptr);
}

void add_rms_norm_kernel(
    const Tensor& input, const Tensor& residual, const Tensor& weight, double eps,
    const Tensor& output, const Tensor& sum) {
  norm(input, &residual, weight, eps, output, &sum);
}
