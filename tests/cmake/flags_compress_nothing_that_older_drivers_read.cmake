include("${KERNEL_CMAKE_DIR}/cuda/flags.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

set(CMAKE_CUDA_COMPILER_VERSION 12.9.86)
kernel_cuda_flags(flags -O3)
assert_equal("${flags}" "--threads=1;-O3")
