#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/Dispatch_v2.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "convert.h"
#include "rmsnorm_kernels.h"

// On x86-64 Linux each function of a row is compiled twice, and the loader takes the better one that
// the machine can run. (By feature: "arch=haswell" would leave out AMD's CPUs.) Elsewhere the
// baseline has vector instructions that are good enough.
#if defined(__x86_64__) && defined(__linux__)
#define FOR_EACH_CPU __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_CPU
#endif

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// A thread takes at least so many elements: with fewer, starting it costs more than it saves.
constexpr int64_t kGrain = 16384;

template <typename T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
ALWAYS_INLINE void normalize(
    const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y, int64_t columns,
    Compute<T> squares, double eps) {
  const Compute<T> scale = 1 / std::sqrt(squares / columns + static_cast<Compute<T>>(eps));
#pragma omp simd
  for (int64_t i = 0; i < columns; ++i) {
    store(y + i, load(x + i) * scale * load(weight + i));
  }
}

template <typename T>
ALWAYS_INLINE void norm(const T* x, const T* weight, T* y, int64_t columns, double eps) {
  Compute<T> squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < columns; ++i) {
    squares += load(x + i) * load(x + i);
  }
  normalize(x, weight, y, columns, squares, eps);
}

// The sum is normalised as it was stored, rounded: the result is that of the two steps apart.
template <typename T>
ALWAYS_INLINE void add_norm(
    const T* __restrict__ x, const T* __restrict__ residual, const T* weight, T* y,
    T* __restrict__ sum, int64_t columns, double eps) {
  Compute<T> squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < columns; ++i) {
    store(sum + i, load(x + i) + load(residual + i));
    squares += load(sum + i) * load(sum + i);
  }
  normalize(sum, weight, y, columns, squares, eps);
}

// Compilers do not clone templates, so each type is spelled out.
#define DEFINE_ROW(T)                                                                         \
  FOR_EACH_CPU void norm_row(const T* x, const T* weight, T* y, int64_t columns, double eps) { \
    norm(x, weight, y, columns, eps);                                                         \
  }                                                                                           \
  FOR_EACH_CPU void add_norm_row(                                                             \
      const T* x, const T* residual, const T* weight, T* y, T* sum, int64_t columns,          \
      double eps) {                                                                           \
    add_norm(x, residual, weight, y, sum, columns, eps);                                      \
  }

DEFINE_ROW(float)
DEFINE_ROW(double)
DEFINE_ROW(c10::Half)
DEFINE_ROW(c10::BFloat16)

template <typename Row>
void for_each_row(const Tensor& tensor, const Row& row) {
  const int64_t columns = tensor.size(tensor.dim() - 1);
  const int64_t rows = tensor.numel() / columns;
  const int64_t grain = std::max<int64_t>(1, kGrain / columns);
  torch::stable::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      row(i * columns, columns);
    }
  });
}

}  // namespace

void rms_norm_kernel(
    const Tensor& input, const Tensor& weight, double eps, const Tensor& output) {
  THO_DISPATCH_V2(
      input.scalar_type(), "rms_norm", AT_WRAP([&] {
        const scalar_t* x = input.const_data_ptr<scalar_t>();
        const scalar_t* w = weight.const_data_ptr<scalar_t>();
        scalar_t* y = output.mutable_data_ptr<scalar_t>();
        for_each_row(input, [=](int64_t start, int64_t columns) {
          norm_row(x + start, w, y + start, columns, eps);
        });
      }),
      AT_EXPAND(AT_FLOATING_TYPES), ScalarType::Half, ScalarType::BFloat16);
}

void add_rms_norm_kernel(
    const Tensor& input, const Tensor& residual, const Tensor& weight, double eps,
    const Tensor& output, const Tensor& sum) {
  THO_DISPATCH_V2(
      input.scalar_type(), "add_rms_norm", AT_WRAP([&] {
        const scalar_t* x = input.const_data_ptr<scalar_t>();
        const scalar_t* r = residual.const_data_ptr<scalar_t>();
        const scalar_t* w = weight.const_data_ptr<scalar_t>();
        scalar_t* y = output.mutable_data_ptr<scalar_t>();
        scalar_t* s = sum.mutable_data_ptr<scalar_t>();
        for_each_row(input, [=](int64_t start, int64_t columns) {
          add_norm_row(x + start, r + start, w, y + start, s + start, columns, eps);
        });
      }),
      AT_EXPAND(AT_FLOATING_TYPES), ScalarType::Half, ScalarType::BFloat16);
}
