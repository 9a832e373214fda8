#pragma once

#include <cuda_runtime.h>

// Written for CUDA: hipify must find and translate it.
constexpr int kThreads = 256;

inline bool failed() { return cudaGetLastError() != cudaSuccess; }
