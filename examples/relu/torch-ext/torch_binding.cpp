#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "registration.h"
#include "relu_kernels.h"

namespace {

at::Tensor relu(const at::Tensor& input) {
  const c10::DeviceGuard guard(input.device());
  const at::Tensor source = input.contiguous();
  at::Tensor output = at::empty_like(source);
  if (output.numel() > 0) {
    relu_kernel(source, output);
  }
  return output;
}

at::Tensor relu_backward(const at::Tensor& grad, const at::Tensor& output) {
  TORCH_CHECK(
      grad.sizes() == output.sizes(),
      "relu_backward: grad has shape ", grad.sizes(), ", output has shape ", output.sizes());
  TORCH_CHECK(
      grad.scalar_type() == output.scalar_type() && grad.device() == output.device(),
      "relu_backward: grad is ", grad.scalar_type(), " on ", grad.device(),
      ", output is ", output.scalar_type(), " on ", output.device());
  const c10::DeviceGuard guard(grad.device());
  const at::Tensor source = grad.contiguous();
  at::Tensor grad_input = at::empty_like(source);
  if (grad_input.numel() > 0) {
    relu_backward_kernel(source, output.contiguous(), grad_input);
  }
  return grad_input;
}

}  // namespace

// `ops` is the namespace that the builder chose for this build: two versions of
// the kernel can be loaded side by side.
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  ops.def("relu(Tensor input) -> Tensor");
  ops.def("relu_backward(Tensor grad, Tensor output) -> Tensor");
#if defined(CPU_KERNEL)
  constexpr auto key = c10::kCPU;
#elif defined(CUDA_KERNEL) || defined(ROCM_KERNEL)
  constexpr auto key = c10::kCUDA;  // what PyTorch calls an AMD GPU, too
#elif defined(METAL_KERNEL)
  constexpr auto key = c10::kMPS;
#elif defined(XPU_KERNEL)
  constexpr auto key = c10::kXPU;
#endif
  ops.impl("relu", key, &relu);
  ops.impl("relu_backward", key, &relu_backward);
}

// Makes the library importable from Python.
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
