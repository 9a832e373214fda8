# CMake's look for modules of C++20 runs each source once more, and with its options ccache keeps nothing.
include("${KERNEL_CMAKE_DIR}/extension.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

assert_equal("${CMAKE_CXX_SCAN_FOR_MODULES}" OFF)
