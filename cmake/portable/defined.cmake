include_guard(GLOBAL)

#[=======================================================================[.rst:
List the symbols that a static library defines.

  kernel_portable_defined(<out-var> <archive>)

The index of the archive has them; a readelf that cannot read it leaves it to nm, which reads every member.
#]=======================================================================]
function(kernel_portable_defined out_var archive)
  execute_process(
    COMMAND "${CMAKE_READELF}" --archive-index --wide "${archive}"
    OUTPUT_VARIABLE text
    RESULT_VARIABLE failed
    ERROR_QUIET
  )
  string(REGEX MATCHALL "\n\t_[^ \n]+" defined "${text}")
  if(failed OR NOT defined)
    execute_process(
      COMMAND "${CMAKE_NM}" --extern-only --defined-only --format=posix "${archive}"
      OUTPUT_VARIABLE text
      ERROR_QUIET
      COMMAND_ERROR_IS_FATAL ANY
    )
    string(REGEX MATCHALL "\n_[^ \n]+" defined "${text}")
  endif()
  list(TRANSFORM defined STRIP)
  list(REMOVE_DUPLICATES defined)
  set("${out_var}" "${defined}" PARENT_SCOPE)
endfunction()
