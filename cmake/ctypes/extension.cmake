include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/exports.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../extension.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../sources.cmake")

#[=======================================================================[.rst:
Make a plain library, which Python loads by ctypes.

  kernel_ctypes_extension(<target> LIBRARY <name> MODULE <module> EXPORTS <glob>...
    [OBJECTS_OF <name>]
    [SOURCES <file>...] [INCLUDE_DIRS <directory>...] [CXX_FLAGS <flag>...]
  )

The file is ``<name>.so`` in ``<module>``. It exports the functions of EXPORTS and nothing else. The sources are those of every
backend; components add theirs.
#]=======================================================================]
function(kernel_ctypes_extension target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_ctypes_extension")
  cmake_parse_arguments(
    PARSE_ARGV 1
    arg
    ""
    "LIBRARY;MODULE;OBJECTS_OF"
    "EXPORTS;SOURCES;INCLUDE_DIRS;CXX_FLAGS"
  )
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  kernel_extension("${target}" MODULE "${arg_MODULE}" CXX_STANDARD 17)
  set_target_properties("${target}" PROPERTIES OUTPUT_NAME "${arg_LIBRARY}")
  kernel_ctypes_exports("${target}" ${arg_EXPORTS})
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
