#pragma once

#include <ATen/core/Tensor.h>

void twice(const at::Tensor &input, const at::Tensor &output);
