# error: does not say which torch it is
include("${KERNEL_CMAKE_DIR}/torch/version.cmake")
file(WRITE "${KERNEL_TEST_DIR}/torch/version.py" "nothing\n")
kernel_torch_version(torch "${KERNEL_TEST_DIR}/torch")
