include("${KERNEL_CMAKE_DIR}/cuda/known.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

set(CMAKE_CUDA_COMPILER "${CMAKE_CURRENT_BINARY_DIR}/nvcc")
file(WRITE "${CMAKE_CUDA_COMPILER}" "#!/bin/sh\nprintf 'compute_80\\ncompute_86\\ncompute_100\\n'\n")
file(CHMOD "${CMAKE_CUDA_COMPILER}" PERMISSIONS OWNER_READ OWNER_EXECUTE)
kernel_cuda_known(nvcc 8.0+PTX 8.0:8.6 7.0:8.6 8.0:10.3f 10.0f)
assert_equal("${nvcc_KNOWN}" "8.0+PTX;8.0:8.6;10.0f")
assert_equal("${nvcc_UNKNOWN}" "7.0:8.6;8.0:10.3f")
