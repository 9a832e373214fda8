include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/stand_ins.cmake")

#[=======================================================================[.rst:
Have all that link to a target linked to the libraries of PyTorch.

  kernel_torch_libraries(<target> DIR <torch directory> [DEVICE <name>] [STABLE])

They are stand-ins: see ``kernel_torch_stand_ins``. Only Apple's linker wants to see each symbol.
#]=======================================================================]
function(kernel_torch_libraries target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "STABLE" "DIR;DEVICE" "")
  set(names torch_cpu)
  if(NOT arg_STABLE)
    list(APPEND names c10)
  endif()
  if(arg_DEVICE)
    list(APPEND names "torch_${arg_DEVICE}")
    if(NOT arg_STABLE)
      list(APPEND names "c10_${arg_DEVICE}")
    endif()
  endif()
  if(APPLE)
    list(TRANSFORM names PREPEND "${arg_DIR}/lib/lib")
    list(TRANSFORM names APPEND "${CMAKE_SHARED_LIBRARY_SUFFIX}")
    target_link_libraries("${target}" INTERFACE ${names})
  else()
    kernel_torch_stand_ins("${target}" INTERFACE ${names})
  endif()
endfunction()
