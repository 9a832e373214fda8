include_guard(GLOBAL)

#[=======================================================================[.rst:
Complete the flags that a kernel gives nvcc, and drop, aloud, what this nvcc does not know.

  kernel_cuda_flags(<out-var> <flag>...)

From CUDA 13 on, whose drivers all read it, device code is compressed as far as nvcc can, unless a flag says how.
#]=======================================================================]
function(kernel_cuda_flags out_var)
  set(flags ${ARGN})
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
    foreach(flag IN LISTS ARGN)
      if(flag MATCHES "^--?static-global-template-stub=")
        message(
          NOTICE
          "'${flag}' is dropped: nvcc has it from 12.8 on, and this is ${CMAKE_CUDA_COMPILER_VERSION}"
        )
        list(REMOVE_ITEM flags "${flag}")
      endif()
    endforeach()
  endif()
  if(
    CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13
    AND NOT "${ARGN}" MATCHES "(^|;)--?(compress-mode|no-compress)"
  )
    list(PREPEND flags "--compress-mode=size")
  endif()
  set(KERNEL_NVCC_THREADS 1 CACHE STRING "Architectures of a source that nvcc compiles at once")
  list(PREPEND flags "--threads=${KERNEL_NVCC_THREADS}")
  set("${out_var}" "${flags}" PARENT_SCOPE)
endfunction()
