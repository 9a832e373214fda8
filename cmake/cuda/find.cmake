include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/root.cmake")

#[=======================================================================[.rst:
Choose nvcc, before ``enable_language(CUDA)``.

  kernel_cuda_find()

The toolkit is that of ``CMAKE_CUDA_COMPILER`` or ``CUDACXX``, of ``CUDAToolkit_ROOT``, ``CUDA_HOME`` or ``CUDA_PATH`` (variables or
environment), of nvcc on PATH, or in /usr/local/cuda. Each source gets its own architectures, so the target has none.
#]=======================================================================]
function(kernel_cuda_find)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_cuda_find")
  set(CMAKE_CUDA_ARCHITECTURES OFF CACHE STRING "Set for each source" FORCE)
  if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
    set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}" CACHE FILEPATH "Compiler of host code")
  endif()
  if(CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
    return()
  endif()

  kernel_cuda_root(root)
  if(NOT root)
    message(
      FATAL_ERROR
      "no CUDA toolkit: looked at CUDAToolkit_ROOT, CUDA_HOME, CUDA_PATH, nvcc on PATH and /usr/local/cuda\n"
      "  help: install the CUDA toolkit, and set CUDA_HOME to its folder if it is not in one of these places"
    )
  endif()
  set(CMAKE_CUDA_COMPILER "${root}/bin/nvcc" CACHE FILEPATH "nvcc")
  set(CUDAToolkit_ROOT "${root}" CACHE PATH "The CUDA toolkit of nvcc")
endfunction()
