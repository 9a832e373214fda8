include_guard(GLOBAL)

#[=======================================================================[.rst:
Spell CUDA capabilities as flags of nvcc: ``9.0a+PTX`` becomes code for that GPU and PTX for later ones, the pair ``8.0:8.6`` code for
8.6 of what is compiled for 8.0.

  kernel_cuda_gencode(<out-var> <capability>...)
#]=======================================================================]
function(kernel_cuda_gencode out_var)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_cuda_gencode")
  set(flags)
  foreach(capability IN LISTS ARGN)
    if(capability MATCHES "^([0-9]+)\\.([0-9][af]?):([0-9]+)\\.([0-9][af]?)$")
      set(virtual "compute_${CMAKE_MATCH_1}${CMAKE_MATCH_2}")
      list(APPEND flags "-gencode=arch=${virtual},code=sm_${CMAKE_MATCH_3}${CMAKE_MATCH_4}")
    elseif(capability MATCHES "^([0-9]+)\\.([0-9][af]?)(\\+PTX)?$")
      set(number "${CMAKE_MATCH_1}${CMAKE_MATCH_2}")
      list(APPEND flags "-gencode=arch=compute_${number},code=sm_${number}")
      if(CMAKE_MATCH_3)
        list(APPEND flags "-gencode=arch=compute_${number},code=compute_${number}")
      endif()
    else()
      message(
        FATAL_ERROR
        "'${capability}' is not a CUDA capability, such as '9.0a+PTX', or a pair of two, such as '8.0:8.6'"
      )
    endif()
  endforeach()
  set("${out_var}" "${flags}" PARENT_SCOPE)
endfunction()
