include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/loader.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/paths.cmake")

#[=======================================================================[.rst:
Return the command of the compiler, if it links to glibc, libgcc and libstdc++ of a known processor; FALSE if not.

  kernel_portable_find(<out-var>)
#]=======================================================================]
function(kernel_portable_find out_var)
  set("${out_var}" FALSE PARENT_SCOPE)
  kernel_portable_loader(loader)
  if(NOT loader)
    return()
  endif()
  set(compiler "${CMAKE_CXX_COMPILER}" ${CMAKE_CXX_COMPILER_ARG1})
  if(CMAKE_CXX_COMPILER_TARGET AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    list(APPEND compiler "--target=${CMAKE_CXX_COMPILER_TARGET}")
  endif()
  if(CMAKE_SYSROOT)
    list(APPEND compiler "--sysroot=${CMAKE_SYSROOT}")
  endif()
  set(
    names
    libc.so.6
    libm.so.6
    libgcc_s.so.1
    libstdc++.so.6
    "${loader}"
  )
  kernel_portable_paths(path COMPILER ${compiler} NAMES ${names})
  foreach(name IN LISTS names)
    if(NOT path_${name})
      return()
    endif()
  endforeach()
  set("${out_var}" "${compiler}" PARENT_SCOPE)
endfunction()
