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
  set(types_function "(FUNC|IFUNC|NOTYPE)")
  set(types_object "OBJECT")
  set(types_tls_object "TLS")
  # Of glibc up to 2.28, of GCC 7 up to the last; versions that are no numbers are old.
  set(old "GLIBC_2\\.([0-9]|1[0-9]|2[0-8])(\\.[0-9]+)?|GLIBCXX_3\\.4(\\.([0-9]|1[0-9]|2[0-4]))?")
  string(
    APPEND old
    "|CXXABI_1\\.3(\\.([0-9]|1[01]))?|GCC_([0-6]\\.[0-9.]+|7\\.0\\.0)|[A-Z]+_[A-Z][A-Z]+[0-9_.]*"
  )

  execute_process(
    COMMAND "${CMAKE_READELF}" --dyn-syms --wide "${library}"
    OUTPUT_VARIABLE text
    ERROR_QUIET
    COMMAND_ERROR_IS_FATAL ANY
  )
  # Remarks such as [VARIANT_PCS], and what glibc keeps to itself.
  string(REGEX REPLACE "\\[[^]\n]*\\]|[^ \n]+_PRIVATE" "" text "${text}")
  # CMake has no sets: a name is in one when its variable is there. Loops are slow, so they see only what is newer.
  foreach(name IN LISTS arg_WITHOUT)
    set("without_${name}" TRUE)
  endforeach()
  set(dated)
  foreach(kind IN ITEMS function object tls_object)
    set(line "${types_${kind}} +[A-Z]+ +DEFAULT +[0-9]+ ")
    string(REGEX MATCHALL "${line}[^ @\n]+@@(${old})\n" linked "${text}")
    string(REGEX MATCHALL "${line}[^ @\n]+@@[^ \n]+" all "${text}")
    string(REGEX MATCHALL "${line}[^ @\n]+@(${old})\n" earlier "${text}")
    list(TRANSFORM linked REPLACE "^.* ([^@]+)@@([^\n]+)\n$" "\\1@\\2")
    list(TRANSFORM all REPLACE "^.* ([^@]+)@@" "\\1@")
    list(TRANSFORM earlier REPLACE "^.* ([^@]+)@([^\n]+)\n$" "\\1@\\2")
    list(REMOVE_ITEM all ${linked})
    foreach(symbol IN LISTS all)
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
    foreach(symbol IN LISTS all)
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
