# error: no function is exported
include("${KERNEL_CMAKE_DIR}/ctypes/exports.cmake")
kernel_ctypes_exports(kernel)
