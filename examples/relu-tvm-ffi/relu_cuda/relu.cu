#include <cuda_runtime.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/cuda/device_guard.h>

#include <algorithm>

#include "relu_kernels.h"

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 65536;

template <typename T>
__global__ void select(const T* gate, const T* value, T* result, int64_t count) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < count; i += step) {
    result[i] = is_positive_or_nan(gate[i]) ? value[i] : T{};
  }
}

}  // namespace

void select_positive(
    DLDevice device, DLDataType type, const void* gate, const void* value, void* result,
    int64_t count) {
  const tvm::ffi::CUDADeviceGuard guard(device.device_id);
  // The stream that the owner of the tensors, PyTorch for example, works on now.
  auto stream =
      static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  const int64_t blocks = std::min((count + kThreads - 1) / kThreads, kMaxBlocks);
  with_type_of(type, [=](auto zero) {
    using T = decltype(zero);
    select<T><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
        static_cast<const T*>(gate), static_cast<const T*>(value), static_cast<T*>(result), count);
  });
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    TVM_FFI_THROW(RuntimeError) << "relu: " << cudaGetErrorString(error);
  }
}
