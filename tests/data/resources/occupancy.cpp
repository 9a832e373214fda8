#include <cstddef>
#include <cstdio>
#include <cstring>
#include "cuda_occupancy.h"
int main() {
  int major, minor, threads, shared, reserved, registers, own, block;
  while (scanf("%d %d %d %d %d %d %d %d", &major, &minor, &threads, &shared, &reserved, &registers, &own, &block) == 8) {
    cudaOccDeviceProp gpu; memset(&gpu, 0, sizeof gpu);
    gpu.computeMajor = major; gpu.computeMinor = minor; gpu.maxThreadsPerBlock = 1024; gpu.warpSize = 32; gpu.numSms = 1;
    gpu.maxThreadsPerMultiprocessor = threads; gpu.regsPerBlock = gpu.regsPerMultiprocessor = 65536;
    gpu.sharedMemPerBlock = 49152; gpu.sharedMemPerMultiprocessor = shared;
    gpu.sharedMemPerBlockOptin = shared - reserved; gpu.reservedSharedMemPerBlock = reserved;
    cudaOccFuncAttributes kernel; memset(&kernel, 0, sizeof kernel);
    kernel.maxThreadsPerBlock = 1024; kernel.numRegs = registers; kernel.sharedSizeBytes = own;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF; kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = shared - reserved - own;
    cudaOccDeviceState state; memset(&state, 0, sizeof state); state.carveoutConfig = 100;
    cudaOccResult result;
    int failed = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &gpu, &kernel, &state, block, 0);
    printf("%d\n", failed ? -failed : result.activeBlocksPerMultiprocessor);
  }
}
