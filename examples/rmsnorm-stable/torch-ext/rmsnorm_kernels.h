// What each backend supplies. The binding checks and allocates; a kernel only computes, on
// contiguous tensors of one type and device that are not empty. Their last dimension is a row.
#pragma once

#include <torch/csrc/stable/tensor.h>

// output = input / rms(input) * weight, for each row.
void rms_norm_kernel(
    const torch::stable::Tensor& input, const torch::stable::Tensor& weight, double eps,
    const torch::stable::Tensor& output);

// sum = input + residual; output = sum / rms(sum) * weight, for each row.
void add_rms_norm_kernel(
    const torch::stable::Tensor& input, const torch::stable::Tensor& residual,
    const torch::stable::Tensor& weight, double eps, const torch::stable::Tensor& output,
    const torch::stable::Tensor& sum);
