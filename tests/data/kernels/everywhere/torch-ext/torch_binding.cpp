#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include "registration.h"
#include "../csrc/twice.h"

static torch::stable::Tensor everywhere_twice(const torch::stable::Tensor &input) {
  auto output = torch::stable::empty_like(input);
  twice(static_cast<const float *>(input.data_ptr()), static_cast<float *>(output.data_ptr()), input.numel());
  return output;
}

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("twice(Tensor input) -> Tensor"); }

#ifdef CPU_KERNEL
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) { ops.impl("twice", TORCH_BOX(&everywhere_twice)); }
#else
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) { ops.impl("twice", TORCH_BOX(&everywhere_twice)); }
#endif

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
