# error: set neither HIP_FOUND nor PYTORCH_FOUND_HIP
include("${KERNEL_CMAKE_DIR}/rocm/missing.cmake")
kernel_rocm_missing()
