include_guard(GLOBAL)

#[=======================================================================[.rst:
Find libraries where a compiler finds them: ``<prefix>_<name>``, empty for what is not there.

  kernel_portable_paths(<prefix> COMPILER <command>... NAMES <name>...)
#]=======================================================================]
function(kernel_portable_paths prefix)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMPILER;NAMES")
  foreach(name IN LISTS arg_NAMES)
    execute_process(
      COMMAND ${arg_COMPILER} "-print-file-name=${name}"
      OUTPUT_VARIABLE path
      OUTPUT_STRIP_TRAILING_WHITESPACE
      COMMAND_ERROR_IS_FATAL ANY
    )
    foreach(implicit IN LISTS CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
      if(NOT IS_ABSOLUTE "${path}" AND EXISTS "${implicit}/${name}")
        set(path "${implicit}/${name}")
      endif()
    endforeach()
    if(NOT IS_ABSOLUTE "${path}")
      set(path "")
    endif()
    set("${prefix}_${name}" "${path}" PARENT_SCOPE)
  endforeach()
endfunction()
