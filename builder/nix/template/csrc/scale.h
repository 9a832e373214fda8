// What each backend supplies. The binding checks and allocates; a kernel only computes.
#pragma once

#include <ATen/core/Tensor.h>

// output = input * factor, for contiguous float32 tensors of one shape and device that are not empty.
void scale_kernel(const at::Tensor& input, double factor, const at::Tensor& output);
