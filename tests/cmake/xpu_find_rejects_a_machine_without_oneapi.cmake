# error: no oneAPI compiler: looked for icpx and icx on PATH
include("${KERNEL_CMAKE_DIR}/xpu/find.cmake")
unset(ENV{CXX})
kernel_xpu_find()
