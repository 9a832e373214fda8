include_guard(GLOBAL)

#[=======================================================================[.rst:
Spell CUDA capabilities as flags of nvcc: ``9.0a+PTX`` becomes code for that GPU and PTX for later ones.

  kernel_cuda_gencode(<out-var> <capability>...)
#]=======================================================================]
function(kernel_cuda_gencode out_var)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_cuda_gencode")
  set(flags)
  foreach(capability IN LISTS ARGN)
    if(NOT capability MATCHES "^([0-9]+)\\.([0-9])([af]?)(\\+PTX)?$")
      message(FATAL_ERROR "'${capability}' is not a CUDA capability, such as '9.0a+PTX'")
    endif()
    set(number "${CMAKE_MATCH_1}${CMAKE_MATCH_2}${CMAKE_MATCH_3}")
    list(APPEND flags "-gencode=arch=compute_${number},code=sm_${number}")
    if(CMAKE_MATCH_4)
      list(APPEND flags "-gencode=arch=compute_${number},code=compute_${number}")
    endif()
  endforeach()
  set("${out_var}" "${flags}" PARENT_SCOPE)
endfunction()
