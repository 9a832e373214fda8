include("${KERNEL_CMAKE_DIR}/cuda/flags.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

set(CMAKE_CUDA_COMPILER_VERSION 13.0.88)
kernel_cuda_flags(flags -O3 -Xfatbin=-compress-all)
assert_equal("${flags}" "--threads=1;--compress-mode=size;-O3;-Xfatbin=-compress-all")
