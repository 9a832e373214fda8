# error: TOOLKIT and a version, then TABLE, are expected
include("${KERNEL_CMAKE_DIR}/cuda/capabilities.cmake")
kernel_cuda_capabilities(found TABLE CUDA>=13.0 9.0)
