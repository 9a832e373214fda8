include_guard(GLOBAL)

#[=======================================================================[.rst:
Pick, of symbols of libc, those that another library of glibc 2.28 had: see moved.txt.

  kernel_portable_moved(<out-var> FROM <library> AMONG <name@version>...)
#]=======================================================================]
function(kernel_portable_moved out_var)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FROM" "AMONG")
  file(READ "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/moved.txt" text)
  string(REGEX REPLACE "\n  " " " text "${text}")
  if(NOT text MATCHES "\n${arg_FROM}: ([^\n]+)")
    message(FATAL_ERROR "nothing moved from '${arg_FROM}' to libc")
  endif()
  string(REPLACE " " ";" names "${CMAKE_MATCH_1}")
  # CMake has no sets: a name is in one when its variable is there.
  foreach(name IN LISTS names)
    set("is_${name}" TRUE)
  endforeach()
  set(found)
  foreach(symbol IN LISTS arg_AMONG)
    string(REGEX MATCH "^[^@]+" name "${symbol}")
    if(DEFINED "is_${name}")
      list(APPEND found "${symbol}")
    endif()
  endforeach()
  set("${out_var}" "${found}" PARENT_SCOPE)
endfunction()
