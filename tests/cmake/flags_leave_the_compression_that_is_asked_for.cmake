include("${KERNEL_CMAKE_DIR}/cuda/flags.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

set(CMAKE_CUDA_COMPILER_VERSION 13.0.88)
foreach(flag IN ITEMS --compress-mode=none -compress-mode=speed --no-compress -no-compress)
  kernel_cuda_flags(flags -O3 "${flag}")
  assert_equal("${flags}" "--threads=1;-O3;${flag}")
endforeach()
