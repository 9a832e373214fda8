include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/libraries.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/target_version.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/version.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../python_package.cmake")

#[=======================================================================[.rst:
Find PyTorch and make it the target ``kernel::torch``.

  kernel_torch_find([DEVICE <name>] [STABLE_ABI <major.minor>])

DEVICE is PyTorch's own name for the backend, in ``torch.version`` and in the names of its libraries: ``cuda``, ``hip``, ``xpu``. Without
it, the kernel needs nothing but the library for the CPU.

PyTorch's own ``find_package(Torch)`` sets global flags, warns of libraries that no wheel has and, for a CUDA build, asks for
the whole CUDA toolkit even for a CPU kernel; the target is therefore made of the files that matter.

With STABLE_ABI, sources see only what PyTorch promises since that version, and any PyTorch from there on supplies the headers,
whatever it was built for.
#]=======================================================================]
function(kernel_torch_find)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_torch_find")
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "DEVICE;STABLE_ABI" "")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(device "")
  if(DEFINED arg_DEVICE)
    set(device DEVICE "${arg_DEVICE}")
  endif()

  kernel_python_package(directory torch CONTAINS include/torch)
  kernel_torch_version(torch "${directory}" ${device})
  message(STATUS "Found torch ${torch_BUILD}: ${directory}")
  if(DEFINED arg_DEVICE AND NOT DEFINED arg_STABLE_ABI AND torch_TOOLKIT STREQUAL "")
    message(
      FATAL_ERROR
      "this kernel is for ${arg_DEVICE}, and the torch found, ${torch_BUILD} in ${directory}, was built without it\n"
      "  help: install a build of torch for ${arg_DEVICE}, or render the kernel for another backend"
    )
  endif()

  add_library(kernel::torch INTERFACE IMPORTED)
  target_include_directories(
    kernel::torch
    INTERFACE "${directory}/include" "${directory}/include/torch/csrc/api/include"
  )
  if(NOT APPLE)
    target_compile_definitions(kernel::torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  endif()
  if("${arg_DEVICE}" STREQUAL "cuda")
    target_compile_definitions(kernel::torch INTERFACE USE_CUDA=1)
  endif()
  if(DEFINED arg_STABLE_ABI)
    kernel_torch_target_version(target STABLE_ABI "${arg_STABLE_ABI}" HEADERS "${torch_VERSION}")
    target_compile_definitions(kernel::torch INTERFACE "TORCH_TARGET_VERSION=${target}")
    kernel_torch_libraries(kernel::torch DIR "${directory}" ${device} STABLE)
  else()
    kernel_torch_libraries(kernel::torch DIR "${directory}" ${device})
  endif()
  set_target_properties(
    kernel::torch
    PROPERTIES KERNEL_DIR "${directory}" KERNEL_VERSION "${torch_VERSION}"
  )
endfunction()
