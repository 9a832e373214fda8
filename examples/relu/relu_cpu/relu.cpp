#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "relu_kernels.h"

namespace {

// Elements that one thread takes at least: below it, starting threads costs more than it saves.
constexpr int64_t kGrain = 32768;

}  // namespace

// The loops have no branches and no calls: the compiler vectorises them.

void relu_kernel(const at::Tensor& input, const at::Tensor& output) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, input.scalar_type(), "relu", [&] {
        const scalar_t* x = input.const_data_ptr<scalar_t>();
        scalar_t* y = output.mutable_data_ptr<scalar_t>();
        at::parallel_for(0, input.numel(), kGrain, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            y[i] = x[i] <= scalar_t(0) ? scalar_t(0) : x[i];
          }
        });
      });
}

void relu_backward_kernel(
    const at::Tensor& grad, const at::Tensor& output, const at::Tensor& grad_input) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, grad.scalar_type(), "relu_backward", [&] {
        const scalar_t* dy = grad.const_data_ptr<scalar_t>();
        const scalar_t* y = output.const_data_ptr<scalar_t>();
        scalar_t* dx = grad_input.mutable_data_ptr<scalar_t>();
        at::parallel_for(0, grad.numel(), kGrain, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            dx[i] = y[i] <= scalar_t(0) ? scalar_t(0) : dy[i];
          }
        });
      });
}
