// Conversions between storage types and the type to compute in, without branches or calls, so
// that a loop which uses them becomes vector instructions even where a CPU has none for float16.
#pragma once

#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <cstdint>
#include <cstring>

#define ALWAYS_INLINE inline __attribute__((always_inline))

template <typename To, typename From>
ALWAYS_INLINE To bits_of(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// `condition ? yes : no`, which compilers would turn into a branch when an operand is costly.
ALWAYS_INLINE uint32_t choose(bool condition, uint32_t yes, uint32_t no) {
  const uint32_t mask = -static_cast<uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

ALWAYS_INLINE float load(const float* p) { return *p; }
ALWAYS_INLINE void store(float* p, float value) { *p = value; }

ALWAYS_INLINE double load(const double* p) { return *p; }
ALWAYS_INLINE void store(double* p, double value) { *p = value; }

// bfloat16 is the upper half of a float.
ALWAYS_INLINE float load(const c10::BFloat16* p) {
  return bits_of<float>(static_cast<uint32_t>(p->x) << 16);
}

ALWAYS_INLINE void store(c10::BFloat16* p, float value) {
  const uint32_t bits = bits_of<uint32_t>(value);
  const uint32_t to_nearest_even = bits + 0x7fff + ((bits >> 16) & 1);
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  p->x = static_cast<uint16_t>(choose(is_nan, bits | 0x400000, to_nearest_even) >> 16);
}

// float16 has the exponent's bias at 15, float at 127; infinity and NaN have its highest value.
ALWAYS_INLINE float load(const c10::Half* p) {
  const uint32_t half = p->x;
  const uint32_t shifted = (half & 0x7fff) << 13;
  const uint32_t finite = bits_of<uint32_t>(bits_of<float>(shifted) * 0x1p112f);
  const uint32_t special = shifted | 0x7f800000;
  return bits_of<float>((half & 0x8000) << 16 | choose(shifted >= 0x0f800000, special, finite));
}

ALWAYS_INLINE void store(c10::Half* p, float value) {
  const uint32_t bits = bits_of<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  // In each range, the rounding is to nearest, ties to even.
  const uint32_t normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  const uint32_t subnormal = bits_of<uint32_t>(bits_of<float>(magnitude) + 0.5f) - 0x3f000000;
  const uint32_t special = choose(magnitude > 0x7f800000, 0x7e00, 0x7c00);
  const uint32_t finite = choose(magnitude < 0x38800000, subnormal, normal);
  const uint32_t result = choose(magnitude >= 0x47800000, special, finite);
  p->x = static_cast<uint16_t>((bits >> 16 & 0x8000) | result);
}
