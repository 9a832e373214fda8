# error: the kernel needs the headers of cutlass 9.9: there is no include/cutlass/cutlass.h
include("${KERNEL_CMAKE_DIR}/headers/find.cmake")
kernel_headers_find(
  target
  NAME cutlass
  VERSION 9.9
  PACKAGE NoSuchCutlass
  VARIABLE NO_CUTLASS_DIR
  SOURCE https://example.com
  CONTAINS include/cutlass/cutlass.h
  INCLUDE
    include
)
