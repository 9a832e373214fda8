include_guard(GLOBAL)

#[=======================================================================[.rst:
List the symbols that a static library defines.

  kernel_portable_defined(<out-var> <archive>)
#]=======================================================================]
function(kernel_portable_defined out_var archive)
  execute_process(
    COMMAND "${CMAKE_NM}" --extern-only --defined-only --format=posix "${archive}"
    OUTPUT_VARIABLE text
    ERROR_QUIET
    COMMAND_ERROR_IS_FATAL ANY
  )
  string(REGEX MATCHALL "\n_[^ \n]+" defined "${text}")
  list(TRANSFORM defined STRIP)
  list(REMOVE_DUPLICATES defined)
  set("${out_var}" "${defined}" PARENT_SCOPE)
endfunction()
