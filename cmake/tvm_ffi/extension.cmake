include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/find.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../extension.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../sources.cmake")

#[=======================================================================[.rst:
Make the library of a kernel that exports functions by tvm-ffi.

  kernel_tvm_ffi_extension(<name> MODULE <module>
    SOURCES <file>... [INCLUDE_DIRS <directory>...] [CXX_FLAGS <flag>...]
  )

``<name>`` names the file (``TVM_FFI_EXTENSION_NAME``). The sources are those that bind; components add theirs. To be called after
``kernel_tvm_ffi_find``.
#]=======================================================================]
function(kernel_tvm_ffi_extension name)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_tvm_ffi_extension")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODULE" "SOURCES;INCLUDE_DIRS;CXX_FLAGS")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  kernel_extension("${name}" MODULE "${arg_MODULE}" CXX_STANDARD 17)
  target_compile_definitions("${name}" PRIVATE "TVM_FFI_EXTENSION_NAME=${name}")
  target_link_libraries("${name}" PRIVATE kernel::tvm_ffi)
  get_target_property(directory kernel::tvm_ffi KERNEL_DIR)
  kernel_prefix_map("${name}" "${directory}" tvm_ffi)
  kernel_sources(
    "${name}"
    SOURCES ${arg_SOURCES}
    INCLUDE_DIRS ${arg_INCLUDE_DIRS}
    C_FLAGS ${arg_CXX_FLAGS}
    CXX_FLAGS ${arg_CXX_FLAGS}
  )
endfunction()
