# error: this kernel is compiled for one Python
set(CMAKE_DISABLE_FIND_PACKAGE_Python ON)
include("${KERNEL_CMAKE_DIR}/python/module.cmake")
kernel_python_module(scale HELP "install them")
