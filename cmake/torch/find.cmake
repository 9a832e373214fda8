include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/libraries.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/target_version.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/version.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../python_package.cmake")

#[=======================================================================[.rst:
Find PyTorch and make it the target ``kernel::torch``.

  kernel_torch_find(BACKEND <cpu|cuda|metal|rocm|xpu> [STABLE_ABI <major.minor>])

PyTorch's own ``find_package(Torch)`` sets global flags, warns of libraries that no wheel has and, for a CUDA build, asks for
the whole CUDA toolkit even for a CPU kernel; the target is therefore made of the files that matter.

With STABLE_ABI, sources see only what PyTorch promises since that version, and any PyTorch from there on supplies the headers,
whatever its backend.
#]=======================================================================]
function(kernel_torch_find)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_torch_find")
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "BACKEND;STABLE_ABI" "")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_BACKEND MATCHES "^(cpu|cuda|metal|rocm|xpu)$")
    message(FATAL_ERROR "'${arg_BACKEND}' is not a backend: cpu, cuda, metal, rocm or xpu")
  endif()

  kernel_python_package(directory torch CONTAINS include/torch)
  kernel_torch_version(torch "${directory}")
  message(STATUS "Found torch ${torch_VERSION} (${torch_BACKEND} ${torch_TOOLKIT}): ${directory}")
  if(arg_BACKEND MATCHES "^(cpu|metal)$")
    set(device "")
  elseif(arg_BACKEND STREQUAL "rocm")
    set(device DEVICE hip)
  else()
    set(device DEVICE "${arg_BACKEND}")
  endif()

  add_library(kernel::torch INTERFACE IMPORTED)
  target_include_directories(
    kernel::torch
    INTERFACE "${directory}/include" "${directory}/include/torch/csrc/api/include"
  )
  if(NOT APPLE)
    target_compile_definitions(kernel::torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  endif()
  if(arg_BACKEND STREQUAL "cuda")
    target_compile_definitions(kernel::torch INTERFACE USE_CUDA=1)
  endif()
  if(DEFINED arg_STABLE_ABI)
    kernel_torch_target_version(target STABLE_ABI "${arg_STABLE_ABI}" HEADERS "${torch_VERSION}")
    target_compile_definitions(kernel::torch INTERFACE "TORCH_TARGET_VERSION=${target}")
    kernel_torch_libraries(libraries DIR "${directory}" ${device} STABLE)
  else()
    if(device AND NOT torch_BACKEND STREQUAL arg_BACKEND)
      message(
        FATAL_ERROR
        "this kernel is for ${arg_BACKEND}, and the torch found, ${torch_VERSION} in ${directory}, is a build for "
        "${torch_BACKEND}\n"
        "  help: install a build of torch for ${arg_BACKEND}, or render the kernel for ${torch_BACKEND}"
      )
    endif()
    kernel_torch_libraries(libraries DIR "${directory}" ${device})
  endif()
  target_link_libraries(kernel::torch INTERFACE "${libraries}")
  set_target_properties(
    kernel::torch
    PROPERTIES
      KERNEL_DIR "${directory}"
      KERNEL_VERSION "${torch_VERSION}"
      KERNEL_TOOLKIT "${torch_TOOLKIT}"
  )
endfunction()
