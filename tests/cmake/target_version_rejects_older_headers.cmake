# error: targets the stable ABI of torch 2.10, and the torch found is 2.9.1
include("${KERNEL_CMAKE_DIR}/torch/target_version.cmake")
kernel_torch_target_version(target STABLE_ABI 2.10 HEADERS 2.9.1)
