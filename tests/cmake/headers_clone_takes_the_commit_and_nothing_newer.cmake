include("${KERNEL_CMAKE_DIR}/headers/clone.cmake")

function(git)
  execute_process(
    COMMAND git -C "${KERNEL_TEST_DIR}/source" -c user.name=a -c user.email=a@b ${ARGN}
    OUTPUT_VARIABLE output
    OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY
  )
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(WRITE "${KERNEL_TEST_DIR}/source/include/a.h" "first")
git(init --quiet)
git(add .)
git(commit --quiet -m first)
git(rev-parse HEAD)
set(commit "${output}")
file(WRITE "${KERNEL_TEST_DIR}/source/include/a.h" "second")
git(commit --quiet --all -m second)

foreach(turn IN ITEMS fetched "there already")
  kernel_headers_clone(root SOURCE "file://${KERNEL_TEST_DIR}/source" COMMIT "${commit}")
  file(READ "${root}/include/a.h" text)
  if(NOT text STREQUAL "first")
    message(FATAL_ERROR "${turn}: ${text}")
  endif()
  file(REMOVE_RECURSE "${KERNEL_TEST_DIR}/source")
endforeach()
