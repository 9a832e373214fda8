include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/../python_package.cmake")

#[=======================================================================[.rst:
Say where PyTorch is, and to it where ROCm is, before ``find_package(Torch)``.

  kernel_rocm_find()

PyTorch's detection reads ``ROCM_PATH`` and ``PYTORCH_ROCM_ARCH`` of the environment. A ROCm that is not in /opt/rocm and that
nobody named is where hipcc on PATH is. hipcc and hipconfig are told that it is AMD's: where they see nvcc and no clang on PATH, they choose
NVIDIA. Each source gets its own architectures: those of the language only serve to test the compiler.
#]=======================================================================]
function(kernel_rocm_find)
  if(NOT Torch_DIR)
    kernel_python_package(torch torch CONTAINS share/cmake/Torch)
    set(Torch_DIR "${torch}/share/cmake/Torch" CACHE PATH "TorchConfig.cmake")
  endif()
  if(NOT DEFINED ENV{ROCM_PATH} AND NOT IS_DIRECTORY /opt/rocm)
    find_program(KERNEL_HIPCC hipcc)
    if(KERNEL_HIPCC)
      file(REAL_PATH "${KERNEL_HIPCC}" hipcc)
      cmake_path(GET hipcc PARENT_PATH bin)
      cmake_path(GET bin PARENT_PATH root)
      set(ENV{ROCM_PATH} "${root}")
    endif()
  endif()
  set(ENV{HIP_PLATFORM} amd)
  if(NOT DEFINED ENV{PYTORCH_ROCM_ARCH})
    set(ENV{PYTORCH_ROCM_ARCH} gfx90a)
  endif()
  set(
    CMAKE_HIP_ARCHITECTURES
    "$ENV{PYTORCH_ROCM_ARCH}"
    CACHE STRING
    "Architectures to test the compiler with"
  )
  if(NOT CMAKE_HIP_COMPILER AND NOT DEFINED ENV{HIPCXX})
    # CMake wants clang itself, not hipcc.
    find_program(
      KERNEL_HIP_CLANG
      clang++
      PATHS
        "$ENV{HIP_CLANG_PATH}"
        "$ENV{ROCM_PATH}/lib/llvm/bin"
        "$ENV{ROCM_PATH}/llvm/bin"
        /opt/rocm/lib/llvm/bin
      NO_DEFAULT_PATH
    )
    if(KERNEL_HIP_CLANG)
      set(CMAKE_HIP_COMPILER "${KERNEL_HIP_CLANG}" CACHE FILEPATH "HIP compiler")
    endif()
  endif()
endfunction()
