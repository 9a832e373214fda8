#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <c10/xpu/XPUStream.h>

#include <cstdint>
#include <sycl/sycl.hpp>

#include "relu_kernels.h"

namespace {

// result = value where gate is positive (or NaN), else 0.
template <typename scalar_t>
struct Select {
  const scalar_t* gate;
  const scalar_t* value;
  scalar_t* result;

  void operator()(sycl::id<1> i) const {
    using opmath_t = at::opmath_type<scalar_t>;
    result[i] = static_cast<opmath_t>(gate[i]) <= opmath_t(0) ? scalar_t(0) : value[i];
  }
};

void select_on_device(
    const at::Tensor& gate, const at::Tensor& value, const at::Tensor& result) {
  sycl::queue& queue = c10::xpu::getCurrentXPUStream().queue();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gate.scalar_type(), "relu", [&] {
    const Select<scalar_t> select{
        gate.const_data_ptr<scalar_t>(), value.const_data_ptr<scalar_t>(),
        result.mutable_data_ptr<scalar_t>()};
    queue.parallel_for(sycl::range<1>(gate.numel()), select);
  });
}

}  // namespace

void relu_kernel(const at::Tensor& input, const at::Tensor& output) {
  select_on_device(input, input, output);
}

void relu_backward_kernel(
    const at::Tensor& grad, const at::Tensor& output, const at::Tensor& grad_input) {
  select_on_device(output, grad, grad_input);
}
