# error: every component of this kernel is left out here
include("${KERNEL_CMAKE_DIR}/when/any.cmake")
include("${KERNEL_CMAKE_DIR}/when/holds.cmake")
kernel_when_holds(holds NAME one COMPILED no)
kernel_when_any()
