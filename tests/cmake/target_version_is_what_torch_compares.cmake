include("${KERNEL_CMAKE_DIR}/torch/target_version.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

kernel_torch_target_version(target STABLE_ABI 2.10 HEADERS 2.13.0)
assert_equal("${target}" 0x20a000000000000)
kernel_torch_target_version(target STABLE_ABI 2.9 HEADERS 2.9.1)
assert_equal("${target}" 0x209000000000000)
