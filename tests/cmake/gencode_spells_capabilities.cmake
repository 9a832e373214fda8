include("${KERNEL_CMAKE_DIR}/cuda/gencode.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

kernel_cuda_gencode(flags 8.0 9.0a 10.0f+PTX)
assert_equal(
  "${flags}"
  "-gencode=arch=compute_80,code=sm_80;-gencode=arch=compute_90a,code=sm_90a;-gencode=arch=compute_100f,code=sm_100f;-gencode=arch=compute_100f,code=compute_100f"
)
kernel_cuda_gencode(flags 8.0:8.6 10.0f:10.3a)
assert_equal("${flags}" "-gencode=arch=compute_80,code=sm_86;-gencode=arch=compute_100f,code=sm_103a")
kernel_cuda_gencode(flags)
assert_equal("${flags}" "")
