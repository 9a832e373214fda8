include_guard(GLOBAL)

#[=======================================================================[.rst:
Write the source of a shared library that has symbols and nothing behind them.

  kernel_portable_stub(<file> [function <symbol>...] [object <symbol>...] [tls_object <symbol>...])

A symbol is a ``name@version``. Beside ``<file>``, an assembler source, ``<file>.map`` gets the versions.
#]=======================================================================]
function(kernel_portable_stub file)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "function;object;tls_object")
  set(section_function ".text")
  set(section_object ".data")
  set(section_tls_object ".section .tdata,\"awT\",@progbits")
  set(assembler)
  foreach(kind IN ITEMS function object tls_object)
    string(
      REGEX REPLACE "([^;@]+)@([^;]+);"
      ".globl \\1\n.type \\1,@${kind}\n.symver \\1,\\1@@@\\2\n\\1:\n"
      text
      "${arg_${kind}};"
    )
    string(REGEX REPLACE "^;" "" text "${text}")
    string(APPEND assembler "${section_${kind}}\n${text}.byte 0\n")
  endforeach()
  string(APPEND assembler ".section .note.GNU-stack,\"\",@progbits\n")
  set(versions ${arg_function} ${arg_object} ${arg_tls_object})
  list(TRANSFORM versions REPLACE "^.*@" "")
  list(REMOVE_DUPLICATES versions)
  list(JOIN versions " { };\n" versions)
  file(WRITE "${file}" "${assembler}")
  file(WRITE "${file}.map" "${versions} { };\n")
endfunction()
