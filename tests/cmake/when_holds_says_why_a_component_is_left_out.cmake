# output: kernel 'one' is left out: CUDA 12.6.20 is not >=12.8, it is not compiled for what it asks for
include("${KERNEL_CMAKE_DIR}/when/holds.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

set(CMAKE_CUDA_COMPILER_VERSION 12.6.20)
kernel_when_holds(holds NAME one CUDA_IS >=12.8 CAPABILITIES CUDA>=12.8 10.0 CUDA>=11.8)
assert_equal("${holds}" FALSE)
set(CMAKE_CUDA_COMPILER_VERSION 12.8.93)
kernel_when_holds(holds NAME one CUDA_IS >=12.8 CAPABILITIES CUDA>=12.8 10.0 CUDA>=11.8)
assert_equal("${holds}" TRUE)
