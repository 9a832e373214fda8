# error: '8.0' stands before the first CUDA>=<version>
include("${KERNEL_CMAKE_DIR}/cuda/capabilities.cmake")
kernel_cuda_capabilities(found TOOLKIT 13.0 TABLE 8.0 CUDA>=13.0 9.0)
