#include <cuda_runtime.h>

#include "block.cuh"
#include "scale_kernel.h"

__global__ void scale_all(const float* input, float factor, float* output, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) {
    output[i] = input[i] * factor;
  }
}

void scale_kernel(const torch::stable::Tensor& input, double factor, const torch::stable::Tensor& output) {
  const int64_t count = input.numel();
  scale_all<<<(count + kThreads - 1) / kThreads, kThreads>>>(
      static_cast<const float*>(input.data_ptr()), static_cast<float>(factor),
      static_cast<float*>(output.data_ptr()), count);
  STD_TORCH_CHECK(!failed(), "scale: the launch failed");
}
