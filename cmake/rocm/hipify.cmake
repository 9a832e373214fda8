include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/../language.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../python/interpreter.cmake")

#[=======================================================================[.rst:
Translate CUDA sources to HIP with PyTorch's hipify, in the build tree.

  kernel_rocm_hipify(<out-var> <file>...)

``.cu`` files become ``.hip`` files, and the headers that they include are translated beside them; other files stay what they are.
The source tree is not written to.
#]=======================================================================]
function(kernel_rocm_hipify out_var)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_rocm_hipify")
  set(cuda)
  foreach(source IN LISTS ARGN)
    kernel_language(language "${source}")
    if(language STREQUAL "CUDA")
      list(APPEND cuda "${source}")
    endif()
  endforeach()
  if(NOT cuda)
    set("${out_var}" "${ARGN}" PARENT_SCOPE)
    return()
  endif()

  kernel_python_interpreter(python)
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/hipified")
  get_target_property(torch kernel::torch KERNEL_DIR)
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/hipify.py")
  # The translations of components before this one stay, but not those of an earlier configuration.
  get_property(translated_before GLOBAL PROPERTY KERNEL_HIPIFIED)
  set(keep)
  if(translated_before)
    set(keep --keep)
  endif()
  set_property(GLOBAL PROPERTY KERNEL_HIPIFIED TRUE)
  execute_process(
    COMMAND
      "${python}" "${script}" --torch "${torch}" --source "${CMAKE_CURRENT_SOURCE_DIR}" --output
      "${directory}" --build "${CMAKE_BINARY_DIR}" ${keep} -- ${cuda}
    OUTPUT_VARIABLE translated
    OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY
  )
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${script}" ${ARGN})
  string(REPLACE "\n" ";" translated "${translated}")
  set(sources "${ARGN}")
  foreach(original hip IN ZIP_LISTS cuda translated)
    list(FIND sources "${original}" index)
    list(REMOVE_AT sources "${index}")
    list(INSERT sources "${index}" "${directory}/${hip}")
  endforeach()
  set("${out_var}" "${sources}" PARENT_SCOPE)
endfunction()
