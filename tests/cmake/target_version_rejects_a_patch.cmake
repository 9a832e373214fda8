# error: '2.10.1' is not a version such as 2.10
include("${KERNEL_CMAKE_DIR}/torch/target_version.cmake")
kernel_torch_target_version(target STABLE_ABI 2.10.1 HEADERS 2.13.0)
