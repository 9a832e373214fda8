#include "relu_kernels.h"

namespace {

// Nothing aliases, every load is unconditional and there is no branch, so the compiler makes
// vector instructions of the loop.
template <typename T>
void select(
    const T* __restrict__ gate, const T* __restrict__ value, T* __restrict__ result,
    int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const T kept = value[i];
    result[i] = is_positive_or_nan(gate[i]) ? kept : T{};
  }
}

}  // namespace

void select_positive(
    DLDevice, DLDataType type, const void* gate, const void* value, void* result, int64_t count) {
  with_type_of(type, [=](auto zero) {
    using T = decltype(zero);
    select(
        static_cast<const T*>(gate), static_cast<const T*>(value), static_cast<T*>(result), count);
  });
}
