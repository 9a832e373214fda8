include_guard(GLOBAL)

#[=======================================================================[.rst:
Read a table of CUDA capabilities for the toolkit at hand.

  kernel_cuda_capabilities(<prefix> TOOLKIT <version> TABLE
    CUDA>=<version> <capability>... [lost <capability>...]
    [CUDA>=<version> ...]
  )

The first row at or below the version of the toolkit holds. Sets ``<prefix>_COMPILED`` and ``<prefix>_LOST``, what was asked for
and this toolkit does not compile.
#]=======================================================================]
function(kernel_cuda_capabilities prefix)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_cuda_capabilities")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TOOLKIT" "TABLE")
  if(DEFINED arg_UNPARSED_ARGUMENTS OR NOT arg_TOOLKIT MATCHES "^[0-9]+\\.[0-9]+")
    message(FATAL_ERROR "TOOLKIT and a version, then TABLE, are expected; found: ${ARGN}")
  endif()
  set(compiled)
  set(lost)
  set(row "")
  set(list "")
  foreach(word IN LISTS arg_TABLE)
    if(word MATCHES "^CUDA>=([0-9.]+)$")
      if(row STREQUAL "holds")
        break()
      elseif(arg_TOOLKIT VERSION_GREATER_EQUAL CMAKE_MATCH_1)
        set(row holds)
      else()
        set(row other)
      endif()
      set(list compiled)
    elseif(NOT row)
      message(FATAL_ERROR "'${word}' stands before the first CUDA>=<version>")
    elseif(word STREQUAL "lost")
      set(list lost)
    elseif(row STREQUAL "holds")
      list(APPEND "${list}" "${word}")
    endif()
  endforeach()
  set("${prefix}_COMPILED" "${compiled}" PARENT_SCOPE)
  set("${prefix}_LOST" "${lost}" PARENT_SCOPE)
endfunction()
