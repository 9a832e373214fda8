# error: no CUDA toolkit: looked at CUDAToolkit_ROOT, CUDA_HOME, CUDA_PATH, nvcc on PATH and /usr/local/cuda
include("${KERNEL_CMAKE_DIR}/cuda/find.cmake")
unset(ENV{CUDACXX})
# As on a machine that has none.
function(kernel_cuda_root out_var)
  set("${out_var}" "" PARENT_SCOPE)
endfunction()
kernel_cuda_find()
