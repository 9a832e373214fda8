#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "registration.h"
#include "scale.h"

namespace {

at::Tensor scale(const at::Tensor& input, double factor) {
  TORCH_CHECK(
      input.scalar_type() == at::kFloat, "scale: takes float32, not ", input.scalar_type());
  const c10::DeviceGuard guard(input.device());
  const at::Tensor source = input.contiguous();
  at::Tensor output = at::empty_like(source);
  if (output.numel() > 0) {
    scale_kernel(source, factor, output);
  }
  return output;
}

}  // namespace

// The builder chooses the namespace for each build: two versions of the kernel can be loaded side by side.
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  ops.def("scale(Tensor input, float factor) -> Tensor");
#if defined(CPU_KERNEL)
  ops.impl("scale", c10::kCPU, &scale);
#elif defined(CUDA_KERNEL) || defined(ROCM_KERNEL)
  ops.impl("scale", c10::kCUDA, &scale);  // what PyTorch calls an AMD GPU, too
#elif defined(METAL_KERNEL)
  ops.impl("scale", c10::kMPS, &scale);
#elif defined(XPU_KERNEL)
  ops.impl("scale", c10::kXPU, &scale);
#endif
}

// Makes the library importable from Python.
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
