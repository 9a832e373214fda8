// Only headers of the stable ABI: torch/csrc/stable, torch/headeronly and the C shim.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/util/Exception.h>

#include <tuple>

#include "registration.h"
#include "rmsnorm_kernels.h"

namespace {

using torch::stable::contiguous;
using torch::stable::empty_like;
using torch::stable::Tensor;

void check_weight(const Tensor& input, const Tensor& weight) {
  STD_TORCH_CHECK(input.dim() >= 1, "rms_norm: input has no dimension to normalise");
  const int64_t columns = input.size(input.dim() - 1);
  STD_TORCH_CHECK(
      weight.dim() == 1 && weight.size(0) == columns, "rms_norm: weight must have ", columns,
      " elements, as the last dimension of input has; it has ", weight.numel());
  STD_TORCH_CHECK(
      weight.scalar_type() == input.scalar_type() && weight.device() == input.device(),
      "rms_norm: weight and input must have the same type and device");
}

void check_residual(const Tensor& input, const Tensor& residual) {
  bool same = residual.dim() == input.dim() && residual.device() == input.device() &&
      residual.scalar_type() == input.scalar_type();
  for (int64_t i = 0; same && i < input.dim(); ++i) {
    same = residual.size(i) == input.size(i);
  }
  STD_TORCH_CHECK(
      same, "add_rms_norm: residual and input must have the same shape, type and device");
}

Tensor rms_norm(const Tensor& input, const Tensor& weight, double eps) {
  check_weight(input, weight);
  const Tensor source = contiguous(input);
  Tensor output = empty_like(source);
  if (output.numel() > 0) {
    rms_norm_kernel(source, contiguous(weight), eps, output);
  }
  return output;
}

std::tuple<Tensor, Tensor> add_rms_norm(
    const Tensor& input, const Tensor& residual, const Tensor& weight, double eps) {
  check_weight(input, weight);
  check_residual(input, residual);
  const Tensor source = contiguous(input);
  Tensor output = empty_like(source);
  Tensor sum = empty_like(source);
  if (output.numel() > 0) {
    add_rms_norm_kernel(source, contiguous(residual), contiguous(weight), eps, output, sum);
  }
  return {output, sum};
}

}  // namespace

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  ops.def("rms_norm(Tensor input, Tensor weight, float eps) -> Tensor");
  ops.def(
      "add_rms_norm(Tensor input, Tensor residual, Tensor weight, float eps)"
      " -> (Tensor output, Tensor sum)");
}

#if defined(CPU_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CPU, ops) {
#elif defined(CUDA_KERNEL)
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) {
#endif
  ops.impl("rms_norm", TORCH_BOX(&rms_norm));
  ops.impl("add_rms_norm", TORCH_BOX(&add_rms_norm));
}

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
