# output: extension 'moe' is left out: CUDA 12.6.20 is not >=12.8
include("${KERNEL_CMAKE_DIR}/when/holds.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

set(CMAKE_CUDA_COMPILER_VERSION 12.6.20)
kernel_when_holds(holds EXTENSION moe CUDA_IS >=12.8)
assert_equal("${holds}" FALSE)
kernel_when_holds(holds EXTENSION other CUDA_IS >=12.6)
assert_equal("${holds}" TRUE)
get_property(absent GLOBAL PROPERTY KERNEL_EXTENSIONS_LEFT_OUT)
assert_equal("${absent}" moe)
get_property(held GLOBAL PROPERTY KERNEL_WHEN_HELD)
assert_equal("${held}" "")
