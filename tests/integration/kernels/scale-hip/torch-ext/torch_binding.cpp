#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "registration.h"
#include "scale_kernel.h"

#ifndef ROCM_KERNEL
#error "ROCM_KERNEL is not defined"
#endif

torch::stable::Tensor scale(const torch::stable::Tensor& input, double factor) {
  torch::stable::Tensor output = torch::stable::empty_like(input);
  scale_kernel(input, factor, output);
  return output;
}

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  ops.def("scale(Tensor input, float factor) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) {
  ops.impl("scale", TORCH_BOX(&scale));
}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
