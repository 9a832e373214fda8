# error: 'sm_90' is not a CUDA capability, such as '9.0a+PTX'
include("${KERNEL_CMAKE_DIR}/cuda/gencode.cmake")
kernel_cuda_gencode(flags 8.0 sm_90)
