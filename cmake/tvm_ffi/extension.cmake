include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/find.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../extension.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../ops_name.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../sources.cmake")

#[=======================================================================[.rst:
Make the library of a kernel that exports functions by tvm-ffi.

  kernel_tvm_ffi_extension(<target> OPS <ops> MODULE <module> [NAME_EVERYWHERE] [NAME_IN <file>...]
    [OBJECTS_OF <name>]
    SOURCES <file>... [INCLUDE_DIRS <directory>...] [CXX_FLAGS <flag>...]
  )

``<ops>`` names the file (``TVM_FFI_EXTENSION_NAME``). Only the files of NAME_IN, or with NAME_EVERYWHERE all, are compiled with it. The
sources are those that bind; components add theirs. To be called after ``kernel_tvm_ffi_find``.
#]=======================================================================]
function(kernel_tvm_ffi_extension target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_tvm_ffi_extension")
  cmake_parse_arguments(
    PARSE_ARGV 1
    arg
    "NAME_EVERYWHERE"
    "OPS;MODULE;OBJECTS_OF"
    "NAME_IN;SOURCES;INCLUDE_DIRS;CXX_FLAGS"
  )
  set(everywhere)
  if(arg_NAME_EVERYWHERE)
    set(everywhere EVERYWHERE)
  endif()
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  kernel_extension("${target}" MODULE "${arg_MODULE}" CXX_STANDARD 17)
  target_compile_definitions("${target}" PRIVATE TVM_FFI_EXTENSION_NAME=KERNEL_OPS)
  kernel_ops_name("${target}" "${arg_OPS}" ${everywhere} SOURCES ${arg_NAME_IN})
  target_link_libraries("${target}" PRIVATE kernel::tvm_ffi)
  get_target_property(directory kernel::tvm_ffi KERNEL_DIR)
  kernel_prefix_map("${target}" "${directory}" tvm_ffi)
  set(objects)
  if(DEFINED arg_OBJECTS_OF)
    set(objects OBJECTS_OF "${arg_OBJECTS_OF}")
  endif()
  kernel_sources(
    "${target}"
    ${objects}
    SOURCES ${arg_SOURCES}
    INCLUDE_DIRS ${arg_INCLUDE_DIRS}
    C_FLAGS ${arg_CXX_FLAGS}
    CXX_FLAGS ${arg_CXX_FLAGS}
  )
endfunction()
