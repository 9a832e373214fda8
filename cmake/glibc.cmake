include_guard(GLOBAL)

#[=======================================================================[.rst:
Let a library run on a glibc older than the compiler's.

  kernel_glibc(<target>)

The headers of libstdc++ read ``__libc_single_threaded``, which glibc has since 2.32: on a newer distribution this one symbol
would keep a library from manylinux_2_28. A hidden definition, with the value that is always right, takes its place.
#]=======================================================================]
function(kernel_glibc target)
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    return()
  endif()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/single_threaded.cpp")
  file(
    CONFIGURE
    OUTPUT "${source}"
    CONTENT
      [[
extern "C" {
__attribute__((visibility("hidden"))) extern char __libc_single_threaded;
char __libc_single_threaded = 0;
}
]]
  )
  target_sources("${target}" PRIVATE "${source}")
endfunction()
