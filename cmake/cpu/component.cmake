include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/../sources.cmake")

#[=======================================================================[.rst:
Add the sources of one ``[kernel.*]`` for the CPU.

  kernel_cpu_component(<target> NAME <name> [OBJECTS_OF <name>]
    SOURCES <file>... [INCLUDE_DIRS <directory>...] [CXX_FLAGS <flag>...]
  )
#]=======================================================================]
function(kernel_cpu_component target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_cpu_component")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;OBJECTS_OF" "SOURCES;INCLUDE_DIRS;CXX_FLAGS")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  target_compile_definitions("${target}" PRIVATE CPU_KERNEL)
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
