#include "twice.h"

namespace {

template <typename T> __global__ void scale(const T *input, T *output, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) {
    output[i] = 2.0f * input[i];
  }
}

} // namespace

void twice(const float *input, float *output, int64_t n) { scale<float><<<(n + 255) / 256, 256>>>(input, output, n); }
