# error: every component of one library is left out: two, three here
include("${KERNEL_CMAKE_DIR}/when/any.cmake")
include("${KERNEL_CMAKE_DIR}/when/holds.cmake")
kernel_when_holds(holds NAME one COMPILED yes)
kernel_when_holds(holds NAME two COMPILED no)
kernel_when_holds(holds NAME three COMPILED no)
kernel_when_any(AMONG one two)
kernel_when_any(AMONG two three)
