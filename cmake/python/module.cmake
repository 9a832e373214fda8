include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/../torch/stand_ins.cmake")

#[=======================================================================[.rst:
Compile a library for one Python, all of whose C API it may use: the one that builds it.

  kernel_python_module(<target> HELP <text>)

Its file has the name that this Python looks for, such as ``<ops>.cpython-312-x86_64-linux-gnu.so``. It may use what
``torch/extension.h`` has, and so is linked to PyTorch's library for Python. HELP says what to do where Python's headers are missing.
To be called after ``kernel_torch_extension``.
#]=======================================================================]
function(kernel_python_module target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_python_module")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HELP" "")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module)
  if(NOT TARGET Python::Module)
    message(
      FATAL_ERROR
      "this kernel is compiled for one Python, and ${Python_EXECUTABLE} has no headers\n"
      "  help: ${arg_HELP}"
    )
  endif()
  if(APPLE)
    get_target_property(directory kernel::torch KERNEL_DIR)
    target_link_libraries(
      "${target}"
      PRIVATE "${directory}/lib/libtorch_python${CMAKE_SHARED_LIBRARY_SUFFIX}"
    )
  else()
    kernel_torch_stand_ins("${target}" PRIVATE torch_python)
  endif()
  # As PyTorch's own cpp_extension has it: <torch/torch.h> then includes <torch/extension.h>.
  target_compile_definitions("${target}" PRIVATE TORCH_API_INCLUDE_EXTENSION_H)
  target_link_libraries("${target}" PRIVATE Python::Module)
  set_target_properties("${target}" PROPERTIES SUFFIX ".${Python_SOABI}.so")
endfunction()
