# error: '8.0:8.6+PTX' is not a CUDA capability, such as '9.0a+PTX', or a pair of two, such as '8.0:8.6'
include("${KERNEL_CMAKE_DIR}/cuda/gencode.cmake")
kernel_cuda_gencode(flags 8.0:8.6+PTX)
