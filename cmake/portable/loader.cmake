include_guard(GLOBAL)

#[=======================================================================[.rst:
Name the loader of glibc for the processor; empty for one that no policy is about.

  kernel_portable_loader(<out-var>)
#]=======================================================================]
function(kernel_portable_loader out_var)
  set("${out_var}" "" PARENT_SCOPE)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    set("${out_var}" ld-linux-x86-64.so.2 PARENT_SCOPE)
  elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set("${out_var}" ld-linux-aarch64.so.1 PARENT_SCOPE)
  endif()
endfunction()
