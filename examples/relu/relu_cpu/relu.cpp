#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "relu_kernels.h"

namespace {

// A thread takes at least so many elements: with fewer, starting it costs more than it saves.
constexpr int64_t kGrain = 32768;

// Positive, or NaN.
template <typename scalar_t>
bool passes(scalar_t x) {
  return !(x <= scalar_t(0));
}

// The same by its bits: without F16C instructions, a conversion to float is slow.
template <>
bool passes(c10::Half x) {
  return (static_cast<int16_t>(x.x) > 0) | ((x.x & 0x7fff) > 0x7c00);
}

// result = value where gate passes, else 0. Nothing aliases, every load is unconditional and
// there is no branch, so the compiler makes vector instructions of the loop.
template <typename scalar_t>
void select(
    const scalar_t* __restrict__ gate, const scalar_t* __restrict__ value,
    scalar_t* __restrict__ result, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const scalar_t kept = value[i];
    result[i] = passes(gate[i]) ? kept : scalar_t(0);
  }
}

void select_in_parallel(
    const at::Tensor& gate, const at::Tensor& value, const at::Tensor& result) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gate.scalar_type(), "relu", [&] {
    const scalar_t* g = gate.const_data_ptr<scalar_t>();
    const scalar_t* v = value.const_data_ptr<scalar_t>();
    scalar_t* r = result.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, gate.numel(), kGrain, [=](int64_t begin, int64_t end) {
      select(g + begin, v + begin, r + begin, end - begin);
    });
  });
}

}  // namespace

void relu_kernel(const at::Tensor& input, const at::Tensor& output) {
  select_in_parallel(input, input, output);
}

void relu_backward_kernel(
    const at::Tensor& grad, const at::Tensor& output, const at::Tensor& grad_input) {
  select_in_parallel(output, grad, grad_input);
}
