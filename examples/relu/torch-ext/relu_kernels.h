// What each backend supplies. The binding checks and allocates; a kernel only
// computes, on contiguous tensors of one shape, type and device that are not empty.
#pragma once

#include <ATen/core/Tensor.h>

// output = input where input > 0, else 0; NaN stays NaN.
void relu_kernel(const at::Tensor& input, const at::Tensor& output);

// grad_input = grad where output > 0, else 0.
void relu_backward_kernel(
    const at::Tensor& grad, const at::Tensor& output, const at::Tensor& grad_input);
