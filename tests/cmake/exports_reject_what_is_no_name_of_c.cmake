# error: '*' is not a name or a glob of functions of C
include("${KERNEL_CMAKE_DIR}/ctypes/exports.cmake")
kernel_ctypes_exports(kernel f_* "*")
