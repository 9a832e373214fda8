# error: has no nonexistent_package
include("${KERNEL_CMAKE_DIR}/python_package.cmake")
kernel_python_package(found nonexistent_package CONTAINS include)
