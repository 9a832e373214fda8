#pragma once

#include <torch/csrc/stable/tensor.h>

void scale_kernel(const torch::stable::Tensor& input, double factor, const torch::stable::Tensor& output);
