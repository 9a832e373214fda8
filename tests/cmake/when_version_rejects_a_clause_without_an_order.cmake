# error: '12.8' is not a clause such as '>=12.8'
include("${KERNEL_CMAKE_DIR}/when/version.cmake")
kernel_when_version(holds 13.0 12.8)
