#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "../csrc/twice.h"
#include "registration.h"

namespace {

at::Tensor classic_twice(const at::Tensor &input) {
  const c10::DeviceGuard guard(input.device());
  const at::Tensor source = input.contiguous();
  at::Tensor output = at::empty_like(source);
  if (output.numel() > 0) {
    twice(source, output);
  }
  return output;
}

} // namespace

TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  ops.def("twice(Tensor input) -> Tensor");
  ops.impl("twice", c10::kCUDA, &classic_twice);
}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
