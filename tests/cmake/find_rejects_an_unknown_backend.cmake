# error: 'gpu' is not a backend: cpu, cuda, metal, rocm or xpu
include("${KERNEL_CMAKE_DIR}/torch/find.cmake")
kernel_torch_find(BACKEND gpu)
