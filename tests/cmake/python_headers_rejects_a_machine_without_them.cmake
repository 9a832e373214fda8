# error: scale.cpp:3 uses <Python.h>, which needs the headers of Python
set(CMAKE_DISABLE_FIND_PACKAGE_Python ON)
include("${KERNEL_CMAKE_DIR}/python/headers.cmake")
kernel_python_headers(scale SOURCE scale.cpp:3 USES <Python.h> API limited HELP "install them")
