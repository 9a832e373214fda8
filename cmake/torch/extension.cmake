include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/find.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../extension.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../sources.cmake")

#[=======================================================================[.rst:
Make the library of a kernel that registers operators with PyTorch.

  kernel_torch_extension(<ops> MODULE <module>
    [SOURCES <file>...] [INCLUDE_DIRS <directory>...] [CXX_FLAGS <flag>...]
  )

``<ops>`` names the file, the namespace of its operators (``TORCH_EXTENSION_NAME``) and what Python imports. The sources are those
that bind; components add theirs. To be called after ``kernel_torch_find``.
#]=======================================================================]
function(kernel_torch_extension ops)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_torch_extension")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODULE" "SOURCES;INCLUDE_DIRS;CXX_FLAGS")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  get_target_property(directory kernel::torch KERNEL_DIR)
  get_target_property(version kernel::torch KERNEL_VERSION)
  # The standard of torch's own headers.
  if(version VERSION_LESS 2.12)
    set(standard 17)
  else()
    set(standard 20)
  endif()
  kernel_extension("${ops}" MODULE "${arg_MODULE}" CXX_STANDARD "${standard}")
  target_compile_definitions("${ops}" PRIVATE "TORCH_EXTENSION_NAME=${ops}")
  target_include_directories("${ops}" PRIVATE torch-ext) # registration.h
  target_link_libraries("${ops}" PRIVATE kernel::torch)
  kernel_prefix_map("${ops}" "${directory}" torch)
  kernel_sources(
    "${ops}"
    SOURCES ${arg_SOURCES}
    INCLUDE_DIRS ${arg_INCLUDE_DIRS}
    C_FLAGS ${arg_CXX_FLAGS}
    CXX_FLAGS ${arg_CXX_FLAGS}
  )
endfunction()
