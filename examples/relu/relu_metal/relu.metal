#include <metal_stdlib>

using namespace metal;

// value where gate is positive (or NaN), else 0.
template <typename T>
kernel void select_positive(
    device const T* gate [[buffer(0)]],
    device const T* value [[buffer(1)]],
    device T* result [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  result[i] = gate[i] <= T(0) ? T(0) : value[i];
}

#define INSTANTIATE(NAME, T)                                              \
  template [[host_name(NAME)]] kernel void select_positive<T>(                     \
      device const T*, device const T*, device T*, uint);

INSTANTIATE("select_float", float)
INSTANTIATE("select_half", half)
INSTANTIATE("select_bfloat", bfloat)
