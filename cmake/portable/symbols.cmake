include_guard(GLOBAL)

#[=======================================================================[.rst:
Read the symbols that a shared library offers to the linker, in the newest version of each that manylinux_2_28 has.

  kernel_portable_symbols(<prefix> <library> [WITHOUT <name>...] [WITHOUT_ALL <regex>])

``<prefix>_<function|object|tls_object>`` list them as ``name@version``. ``<prefix>_DATED`` lists those for which the linker would have
taken a newer version. What is newer in every version keeps it, so that it can be named when it is called, unless it is in WITHOUT or
matches WITHOUT_ALL: that comes from elsewhere.
#]=======================================================================]
function(kernel_portable_symbols prefix library)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "WITHOUT_ALL" "WITHOUT")
  set(type_function FUNC) # and IFUNC
  set(type_object OBJECT)
  set(type_tls_object TLS)
  # Of glibc up to 2.28, of GCC 7 up to the last; versions that are no numbers are old.
  # CMake's expressions have at most nine groups.
  set(old "GLIBC_2\\.[0-9]|GLIBC_2\\.[0-9]\\.[0-9]|GLIBC_2\\.1[0-9]|GLIBC_2\\.2[0-8]")
  string(
    APPEND old
    "|GLIBCXX_3\\.4|GLIBCXX_3\\.4\\.[0-9]|GLIBCXX_3\\.4\\.1[0-9]|GLIBCXX_3\\.4\\.2[0-4]"
  )
  string(
    APPEND old
    "|CXXABI_1\\.3|CXXABI_1\\.3\\.[0-9]|CXXABI_1\\.3\\.1[01]|CXXABI_FLOAT128|CXXABI_TM_1"
  )
  string(APPEND old "|GCC_[0-6]\\.[0-9.]+|GCC_7\\.0\\.0")

  execute_process(
    COMMAND "${CMAKE_READELF}" --dyn-syms --wide "${library}"
    OUTPUT_VARIABLE text
    ERROR_QUIET
    COMMAND_ERROR_IS_FATAL ANY
  )
  string(FIND "${text}" "[" remark) # such as [VARIANT_PCS]
  if(NOT remark EQUAL -1)
    string(REGEX REPLACE "\\[[^]\n]*\\]" "" text "${text}")
  endif()
  # CMake has no sets: a name is in one when its variable is there. Loops are slow, so they see only what is newer.
  foreach(name IN LISTS arg_WITHOUT)
    set("without_${name}" TRUE)
  endforeach()
  set(dated)
  foreach(kind IN ITEMS function object tls_object)
    # Without alternatives at the start, which make a search slow.
    set(line "${type_${kind}} +[A-Z]+ +DEFAULT +[0-9]+ ")
    string(REGEX MATCHALL "${line}[^ @\n]+@@[^ \n]+" linked "${text}")
    string(REGEX MATCHALL "${line}[^ @\n]+@[A-Z][^ \n]+" earlier "${text}")
    string(REGEX REPLACE "${line}([^;@]+)@@?" "\\1@" linked "${linked}")
    string(REGEX REPLACE "${line}([^;@]+)@@?" "\\1@" earlier "${earlier}")
    set(newer "${linked}")
    list(FILTER linked INCLUDE REGEX "@(${old})$")
    list(FILTER earlier INCLUDE REGEX "@(${old})$")
    list(FILTER newer EXCLUDE REGEX "@(${old}|.*_PRIVATE)$")
    foreach(symbol IN LISTS newer)
      string(REGEX MATCH "^[^@]+" name "${symbol}")
      set("new_${name}" TRUE)
    endforeach()
    foreach(symbol IN LISTS earlier)
      string(REGEX MATCH "^([^@]+)@[^_]+_(.*)$" symbol "${symbol}")
      if(NOT DEFINED "new_${CMAKE_MATCH_1}")
        continue()
      endif()
      if(
        NOT DEFINED "old_${CMAKE_MATCH_1}"
        OR CMAKE_MATCH_2 VERSION_GREATER "${number_${CMAKE_MATCH_1}}"
      )
        set("old_${CMAKE_MATCH_1}" "${symbol}")
        set("number_${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}")
      endif()
    endforeach()
    foreach(symbol IN LISTS newer)
      string(REGEX MATCH "^[^@]+" name "${symbol}")
      if(DEFINED "old_${name}")
        list(APPEND linked "${old_${name}}")
        list(APPEND dated "${old_${name}}")
      elseif(NOT DEFINED "without_${name}" AND NOT name MATCHES "^(${arg_WITHOUT_ALL})$")
        list(APPEND linked "${symbol}")
      endif()
    endforeach()
    set("${prefix}_${kind}" "${linked}" PARENT_SCOPE)
  endforeach()
  set("${prefix}_DATED" "${dated}" PARENT_SCOPE)
endfunction()
