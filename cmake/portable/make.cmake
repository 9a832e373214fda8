# Make the libraries that a kernel is linked to. Run as a script, beside the compilers, because it takes as long as a source.
#
#   cmake -D SETTINGS=<file> -P make.cmake

cmake_minimum_required(VERSION 3.21)

include("${SETTINGS}")
include("${CMAKE_CURRENT_LIST_DIR}/libraries.cmake")
cmake_path(GET SETTINGS PARENT_PATH directory)
kernel_portable_libraries("${directory}" SHIMS libkernel_portable.a COMPILER ${KERNEL_COMPILER})
