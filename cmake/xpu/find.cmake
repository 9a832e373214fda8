include_guard(GLOBAL)

#[=======================================================================[.rst:
Make the compilers of oneAPI those of the project, before ``project()``.

  kernel_xpu_find()

They are ``CMAKE_CXX_COMPILER`` or ``CXX`` where these are set, else icpx and icx of ``ONEAPI_ROOT`` or on PATH.
#]=======================================================================]
function(kernel_xpu_find)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_xpu_find")
  if(CMAKE_CXX_COMPILER OR DEFINED ENV{CXX})
    return()
  endif()
  set(
    roots
    "$ENV{ONEAPI_ROOT}/compiler/latest/bin"
    "$ENV{CMPLR_ROOT}/bin"
    /opt/intel/oneapi/compiler/latest/bin
  )
  find_program(KERNEL_ICPX icpx HINTS ${roots})
  find_program(KERNEL_ICX icx HINTS ${roots})
  if(NOT KERNEL_ICPX OR NOT KERNEL_ICX)
    message(
      FATAL_ERROR
      "no oneAPI compiler: looked for icpx and icx on PATH, in ONEAPI_ROOT and in /opt/intel/oneapi\n"
      "  help: install the Intel oneAPI DPC++/C++ compiler and source its setvars.sh, or set ONEAPI_ROOT"
    )
  endif()
  set(CMAKE_CXX_COMPILER "${KERNEL_ICPX}" CACHE FILEPATH "C++ compiler")
  set(CMAKE_C_COMPILER "${KERNEL_ICX}" CACHE FILEPATH "C compiler")
endfunction()
