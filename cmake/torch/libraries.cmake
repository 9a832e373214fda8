include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/stand_in.cmake")

#[=======================================================================[.rst:
List the libraries of PyTorch that a kernel is linked to.

  kernel_torch_libraries(<out-var> DIR <torch directory> [DEVICE <name>] [STABLE])

A kernel of the stable ABI is linked to a stand-in for the library of its device: see ``kernel_torch_stand_in``.
#]=======================================================================]
function(kernel_torch_libraries out_var)
  cmake_parse_arguments(PARSE_ARGV 1 arg "STABLE" "DIR;DEVICE" "")
  set(names torch_cpu)
  if(NOT arg_STABLE)
    list(APPEND names c10)
    if(arg_DEVICE)
      list(APPEND names "torch_${arg_DEVICE}" "c10_${arg_DEVICE}")
    endif()
  endif()
  list(TRANSFORM names PREPEND "${arg_DIR}/lib/lib" OUTPUT_VARIABLE libraries)
  list(TRANSFORM libraries APPEND "${CMAKE_SHARED_LIBRARY_SUFFIX}")
  if(arg_STABLE AND arg_DEVICE)
    kernel_torch_stand_in(stand_in "torch_${arg_DEVICE}")
    list(APPEND libraries "${stand_in}")
  endif()
  if(NOT APPLE)
    # Symbols of torch are looked for only in the libraries that a kernel names, used or not.
    list(PREPEND libraries -Wl,--push-state,--no-as-needed)
    list(APPEND libraries -Wl,--pop-state)
  endif()
  set("${out_var}" "${libraries}" PARENT_SCOPE)
endfunction()
