// What each backend supplies. The binding checks; a kernel only computes.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>

#if defined(__CUDACC__)
#define RELU_HOST_DEVICE __host__ __device__
#else
#define RELU_HOST_DEVICE
#endif

// result = value where gate is positive or NaN, else 0, for `count` elements of a type. With
// input as gate and value, that is ReLU; with its output as gate, it is ReLU's gradient.
void select_positive(
    DLDevice device, DLDataType type, const void* gate, const void* value, void* result,
    int64_t count);

// A 16-bit floating-point number, of which only the sign and the class matter here: above
// kInfinity, its exponent's highest value with an empty fraction, is NaN.
template <int kInfinity>
struct Float16Bits {
  int16_t bits;
};
using Float16 = Float16Bits<0x7c00>;
using BFloat16 = Float16Bits<0x7f80>;

template <typename T>
RELU_HOST_DEVICE bool is_positive_or_nan(T x) {
  return !(x <= T(0));
}

template <int kInfinity>
RELU_HOST_DEVICE bool is_positive_or_nan(Float16Bits<kInfinity> x) {
  return (x.bits > 0) | ((x.bits & 0x7fff) > kInfinity);
}

// Call `function` with a value of the C++ type that `type` names; return whether there is one.
template <typename Function>
bool with_type_of(DLDataType type, Function function) {
  if (type.lanes != 1) {
    return false;
  }
  if (type.code == kDLFloat && type.bits == 64) {
    function(double{});
  } else if (type.code == kDLFloat && type.bits == 32) {
    function(float{});
  } else if (type.code == kDLFloat && type.bits == 16) {
    function(Float16{});
  } else if (type.code == kDLBfloat && type.bits == 16) {
    function(BFloat16{});
  } else {
    return false;
  }
  return true;
}
