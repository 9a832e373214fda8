include_guard(GLOBAL)

include(FetchContent)

#[=======================================================================[.rst:
Find the tree of a foreign source, or fetch it; nothing of it is built by its own CMake.

  kernel_foreign_source(<name>
    GIT <URL> REV <commit> [SUBMODULES ALL | <path>...] | URL <URL> SHA256 <hash>
  )

``<name>_SOURCE_DIR`` is its folder: what ``FETCHCONTENT_SOURCE_DIR_<NAME>`` names, which takes the place of fetching it.
#]=======================================================================]
function(kernel_foreign_source name)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_foreign_source")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "GIT;REV;URL;SHA256" "SUBMODULES")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  string(TOUPPER "FETCHCONTENT_SOURCE_DIR_${name}" variable)
  if(NOT "${${variable}}" STREQUAL "" AND NOT IS_DIRECTORY "${${variable}}")
    message(FATAL_ERROR "${variable} names '${${variable}}', which is not a folder")
  endif()
  # A folder that no tree has: FetchContent adds the CMakeLists.txt in it, and there is none.
  set(options SOURCE_SUBDIR "kernel-adds-nothing-of-it")
  if(DEFINED arg_URL)
    list(APPEND options URL "${arg_URL}" URL_HASH "SHA256=${arg_SHA256}")
    list(APPEND options DOWNLOAD_EXTRACT_TIMESTAMP OFF)
  elseif(arg_REV MATCHES "^[0-9a-f]+$")
    list(APPEND options GIT_REPOSITORY "${arg_GIT}" GIT_TAG "${arg_REV}")
    if(arg_SUBMODULES AND NOT arg_SUBMODULES STREQUAL "ALL")
      list(APPEND options GIT_SUBMODULES ${arg_SUBMODULES})
    endif()
  else()
    message(FATAL_ERROR "'${arg_REV}' is not a whole commit: a tag can be moved")
  endif()
  if(NOT DEFINED arg_URL AND NOT arg_SUBMODULES)
    FetchContent_Declare("${name}" ${options} GIT_SUBMODULES "")
  else()
    FetchContent_Declare("${name}" ${options})
  endif()
  FetchContent_MakeAvailable("${name}")
  FetchContent_GetProperties("${name}" SOURCE_DIR directory)
  set("${name}_SOURCE_DIR" "${directory}" PARENT_SCOPE)
endfunction()
