include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/air.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../sources.cmake")

#[=======================================================================[.rst:
Add the sources of one ``[kernel.*]`` for Metal.

  kernel_metal_component(<target> NAME <name> [OBJECTS_OF <name>]
    SOURCES <file>... [INCLUDE_DIRS <directory>...] [CXX_FLAGS <flag>...] [METAL_FLAGS <flag>...]
  )

``.metal`` sources go into the target's Metal library, which is embedded; see ``kernel_metal_library``. METAL_FLAGS are theirs.
#]=======================================================================]
function(kernel_metal_component target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_metal_component")
  cmake_parse_arguments(
    PARSE_ARGV 1
    arg
    ""
    "NAME;OBJECTS_OF"
    "SOURCES;INCLUDE_DIRS;CXX_FLAGS;METAL_FLAGS"
  )
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  set(shaders "${arg_SOURCES}")
  list(FILTER shaders INCLUDE REGEX "\\.metal$")
  list(FILTER arg_SOURCES EXCLUDE REGEX "\\.metal$")
  foreach(shader IN LISTS shaders)
    kernel_metal_air(
      "${target}"
      "${shader}"
      INCLUDE_DIRS ${arg_INCLUDE_DIRS}
      FILE_FLAGS ${arg_METAL_FLAGS}
    )
  endforeach()

  target_compile_definitions("${target}" PRIVATE METAL_KERNEL)
  target_compile_options("${target}" PRIVATE $<$<COMPILE_LANGUAGE:OBJC,OBJCXX>:-fobjc-arc>)
  target_link_libraries("${target}" PRIVATE "-framework Metal" "-framework Foundation")
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
    OBJC_FLAGS ${arg_CXX_FLAGS}
    OBJCXX_FLAGS ${arg_CXX_FLAGS}
  )
endfunction()
