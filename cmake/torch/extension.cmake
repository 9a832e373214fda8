include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/find.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../extension.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../ops_name.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../sources.cmake")

#[=======================================================================[.rst:
Make the library of a kernel that registers operators with PyTorch.

  kernel_torch_extension(<target> OPS <ops> MODULE <module> [EXTENSION <name>] [NAME_EVERYWHERE] [NAME_IN <file>...]
    [OBJECTS_OF <name>]
    [SOURCES <file>...] [INCLUDE_DIRS <directory>...] [CXX_FLAGS <flag>...]
  )

``<ops>`` names the file and the namespace of its operators (``TORCH_EXTENSION_NAME``). It is linked in; only the files of NAME_IN,
or with NAME_EVERYWHERE all, are compiled with it. With EXTENSION, it is one more library of the project. The sources are those that bind; components add theirs. To be called after
``kernel_torch_find``.
#]=======================================================================]
function(kernel_torch_extension target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_torch_extension")
  cmake_parse_arguments(
    PARSE_ARGV 1
    arg
    "NAME_EVERYWHERE"
    "OPS;MODULE;EXTENSION;OBJECTS_OF"
    "NAME_IN;SOURCES;INCLUDE_DIRS;CXX_FLAGS"
  )
  set(everywhere)
  if(arg_NAME_EVERYWHERE)
    set(everywhere EVERYWHERE)
  endif()
  set(extension)
  if(DEFINED arg_EXTENSION)
    set(extension EXTENSION "${arg_EXTENSION}")
  endif()
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
  kernel_extension("${target}" MODULE "${arg_MODULE}" CXX_STANDARD "${standard}")
  target_compile_definitions("${target}" PRIVATE TORCH_EXTENSION_NAME=KERNEL_OPS)
  kernel_ops_name("${target}" "${arg_OPS}" ${everywhere} ${extension} SOURCES ${arg_NAME_IN})
  target_include_directories("${target}" PRIVATE torch-ext) # registration.h
  target_link_libraries("${target}" PRIVATE kernel::torch)
  kernel_prefix_map("${target}" "${directory}" torch)
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
