include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/clone.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/fetch.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../prefix_map.cmake")

#[=======================================================================[.rst:
Give a target the headers of a library that has nothing but headers.

  kernel_headers_find(<target> NAME <name> [VERSION <version>]
    PACKAGE <CMake package> VARIABLE <variable> SOURCE <URL>
    CONTAINS <file> INCLUDE <directory>...
    [WHEEL <requirement> SHA256 <hash> WHEEL_ROOT <directory>]
    [COMMIT <hash>]
  )

They are in the folder that the variable, of CMake or of the environment, names; else in the CMake package; else they are fetched, and are
what the hash says: in a wheel, by pip from wherever it is set up to look, or as a commit of the source's repository, by git.
#]=======================================================================]
function(kernel_headers_find target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_headers_find")
  set(
    single
    NAME
    VERSION
    PACKAGE
    VARIABLE
    SOURCE
    CONTAINS
    WHEEL
    SHA256
    WHEEL_ROOT
    COMMIT
  )
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "${single}" "INCLUDE")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  set(root "${${arg_VARIABLE}}")
  if(NOT root)
    set(root "$ENV{${arg_VARIABLE}}")
  endif()
  if(NOT root)
    find_package("${arg_PACKAGE}" ${arg_VERSION} QUIET CONFIG)
    if(${arg_PACKAGE}_FOUND)
      message(STATUS "Found ${arg_NAME} ${arg_VERSION}: ${${arg_PACKAGE}_DIR}")
      target_include_directories("${target}" SYSTEM PRIVATE "${${arg_PACKAGE}_INCLUDE_DIR}")
      return()
    endif()
  endif()
  if(NOT root AND DEFINED arg_WHEEL)
    kernel_headers_fetch(root WHEEL "${arg_WHEEL}" SHA256 "${arg_SHA256}")
    string(APPEND root "/${arg_WHEEL_ROOT}")
  elseif(NOT root AND DEFINED arg_COMMIT)
    kernel_headers_clone(root SOURCE "${arg_SOURCE}" COMMIT "${arg_COMMIT}")
  endif()
  if(NOT EXISTS "${root}/${arg_CONTAINS}")
    message(
      FATAL_ERROR
      "the kernel needs the headers of ${arg_NAME} ${arg_VERSION}: there is no ${arg_CONTAINS} in '${root}', and no CMake "
      "package ${arg_PACKAGE}\n"
      "  help: get them from ${arg_SOURCE}, and name their folder with -D${arg_VARIABLE}=… or in the environment"
    )
  endif()
  message(STATUS "Found ${arg_NAME} ${arg_VERSION}: ${root}")
  kernel_prefix_map("${target}" "${root}" "${arg_NAME}")
  foreach(directory IN LISTS arg_INCLUDE)
    target_include_directories("${target}" SYSTEM PRIVATE "${root}/${directory}")
  endforeach()
endfunction()
