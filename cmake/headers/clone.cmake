include_guard(GLOBAL)

#[=======================================================================[.rst:
Fetch one commit of a Git repository; once for each build directory. The commit is a hash over all its files.

  kernel_headers_clone(<out-var> SOURCE <URL> COMMIT <hash>)
#]=======================================================================]
function(kernel_headers_clone out_var)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_headers_clone")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE;COMMIT" "")
  if(NOT arg_COMMIT MATCHES "^[0-9a-f]+$")
    message(FATAL_ERROR "'${arg_COMMIT}' is not a whole commit: a tag can be moved")
  endif()
  set(directory "${CMAKE_BINARY_DIR}/headers/${arg_COMMIT}")
  set("${out_var}" "${directory}" PARENT_SCOPE)
  if(IS_DIRECTORY "${directory}")
    return()
  endif()

  find_program(KERNEL_GIT git)
  if(NOT KERNEL_GIT)
    message(FATAL_ERROR "no git on PATH, which fetches ${arg_SOURCE}\n  help: install git")
  endif()
  # Cloned aside, then renamed: what is there is whole.
  set(clone "${CMAKE_BINARY_DIR}/headers/clone")
  file(REMOVE_RECURSE "${clone}")
  execute_process(COMMAND "${KERNEL_GIT}" init --quiet "${clone}" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(
    COMMAND "${KERNEL_GIT}" -C "${clone}" fetch --quiet --depth 1 "${arg_SOURCE}" "${arg_COMMIT}"
    RESULT_VARIABLE result
    ERROR_VARIABLE error
  )
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "git cannot fetch ${arg_COMMIT} of ${arg_SOURCE}\n${error}")
  endif()
  execute_process(
    COMMAND
      "${KERNEL_GIT}" -C "${clone}" -c advice.detachedHead=false checkout --quiet "${arg_COMMIT}"
    COMMAND_ERROR_IS_FATAL ANY
  )
  file(RENAME "${clone}" "${directory}")
endfunction()
