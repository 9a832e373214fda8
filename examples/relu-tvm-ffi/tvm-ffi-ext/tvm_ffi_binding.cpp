// Tensors come by DLPack: nothing here knows whether PyTorch, NumPy, JAX or CuPy owns them.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <algorithm>

#include "relu_kernels.h"

namespace {

using tvm::ffi::TensorView;

#if defined(CPU_KERNEL)
constexpr DLDeviceType kDevice = kDLCPU;
constexpr const char* kDeviceName = "the CPU";
#elif defined(CUDA_KERNEL)
constexpr DLDeviceType kDevice = kDLCUDA;
constexpr const char* kDeviceName = "a CUDA device";
#endif

void check(const char* op, const TensorView& tensor, const TensorView& like) {
  if (tensor.device().device_type != kDevice) {
    TVM_FFI_THROW(ValueError) << op << ": this build takes tensors on " << kDeviceName;
  }
  if (!with_type_of(tensor.dtype(), [](auto) {})) {
    TVM_FFI_THROW(TypeError) << op << ": takes float16, bfloat16, float32 and float64";
  }
  const DLDataType type = tensor.dtype(), other = like.dtype();
  if (type.code != other.code || type.bits != other.bits) {
    TVM_FFI_THROW(TypeError) << op << ": tensors must have the same type";
  }
  if (tensor.device().device_id != like.device().device_id) {
    TVM_FFI_THROW(ValueError) << op << ": tensors must be on the same device";
  }
  if (!std::equal(
          tensor.shape().begin(), tensor.shape().end(), like.shape().begin(),
          like.shape().end())) {
    TVM_FFI_THROW(ValueError) << op << ": tensors must have the same shape";
  }
  if (!tensor.IsContiguous()) {
    TVM_FFI_THROW(ValueError) << op << ": tensors must be contiguous";
  }
}

char* data(const TensorView& tensor) {
  return static_cast<char*>(tensor.data_ptr()) + tensor.byte_offset();
}

// The caller allocates: the same library that owns the input.
void relu(TensorView input, TensorView output) {
  check("relu", input, input);
  check("relu", output, input);
  if (input.numel() > 0) {
    select_positive(
        input.device(), input.dtype(), data(input), data(input), data(output), input.numel());
  }
}

void relu_backward(TensorView grad, TensorView output, TensorView grad_input) {
  check("relu_backward", grad, grad);
  check("relu_backward", output, grad);
  check("relu_backward", grad_input, grad);
  if (grad.numel() > 0) {
    select_positive(
        grad.device(), grad.dtype(), data(output), data(grad), data(grad_input), grad.numel());
  }
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(relu, relu);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(relu_backward, relu_backward);
