include("${KERNEL_CMAKE_DIR}/cuda/machine_code.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

kernel_cuda_machine_code(names 8.0 8.0:8.6 9.0a+PTX 10.0f:10.3 10.0f:10.3a 10.0:10.0f)
assert_equal("${names}" "8.0;8.6;9.0a+PTX;10.3f;10.3a;10.0f")
kernel_cuda_machine_code(names)
assert_equal("${names}" "")
