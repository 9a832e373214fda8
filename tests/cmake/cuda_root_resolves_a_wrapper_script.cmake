include("${KERNEL_CMAKE_DIR}/cuda/root.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

file(MAKE_DIRECTORY "${KERNEL_TEST_DIR}/toolkit/bin")
file(
  WRITE "${KERNEL_TEST_DIR}/path/nvcc"
  "#!/bin/sh\necho '#$ _SPACE_= ' >&2\necho '#$ TOP=${KERNEL_TEST_DIR}/toolkit/bin/..' >&2\n"
)
file(CHMOD "${KERNEL_TEST_DIR}/path/nvcc" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
foreach(name IN ITEMS CUDAToolkit_ROOT CUDA_HOME CUDA_PATH)
  unset(ENV{${name}})
endforeach()
set(ENV{PATH} "${KERNEL_TEST_DIR}/path:$ENV{PATH}")
kernel_cuda_root(root)
assert_equal("${root}" "${KERNEL_TEST_DIR}/toolkit")
