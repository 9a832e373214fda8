# error: CXX_STANDARD is missing
include("${KERNEL_CMAKE_DIR}/extension.cmake")
kernel_extension(ops MODULE module)
