include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/portable/find.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/portable/step.cmake")

#[=======================================================================[.rst:
Let a library run where glibc and libstdc++ are older than the compiler's: manylinux_2_28 has glibc 2.28 and those of GCC 7.

  kernel_portable(<target>)

It is linked to stubs that have no symbol in a newer version where there is an older, so that the linker takes the older. What
has none comes, hidden, from archives of which the linker takes what is called: ``kernel_portable``, with what newer headers call in
place of what the source says, and members of the static libstdc++. What is newer after all is an error; ``KERNEL_MANYLINUX``
names a newer policy to accept, or nothing to accept all.
#]=======================================================================]
function(kernel_portable target)
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    return()
  endif()
  set(
    KERNEL_MANYLINUX
    "manylinux_2_28"
    CACHE STRING
    "Newest manylinux policy that a library may need; empty: any"
  )
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/portable")
  set(
    sources
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/bad_array_new_length.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/c23.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/clock.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/exceptions.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/facets.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/random.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/single_threaded.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/sstream.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/stat.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/streams.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/terminate.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/thread.cpp"
    "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/thread_id.cpp"
  )
  kernel_portable_find(compiler)
  if(NOT compiler)
    message(
      STATUS
      "Not made portable: glibc, libgcc and libstdc++ were not found on ${CMAKE_SYSTEM_PROCESSOR}"
    )
    return()
  endif()

  if(NOT TARGET kernel_portable)
    add_library(kernel_portable STATIC EXCLUDE_FROM_ALL ${sources})
    # One at a time: these are short, and ninja would take all of them before the first source of the kernel.
    set_property(GLOBAL APPEND PROPERTY JOB_POOLS kernel_portable=1)
    set_target_properties(
      kernel_portable
      PROPERTIES
        POSITION_INDEPENDENT_CODE ON
        CXX_STANDARD 20
        ARCHIVE_OUTPUT_DIRECTORY "${directory}"
        JOB_POOL_COMPILE kernel_portable
    )
    kernel_reproducible(kernel_portable)
  endif()
  kernel_portable_step("${target}" DIR "${directory}" COMPILER ${compiler})
  target_link_libraries("${target}" PRIVATE kernel_portable)
  target_link_options(
    "${target}"
    PRIVATE
      "-L${directory}"
      LINKER:--exclude-libs,libkernel_portable.a,--exclude-libs,libkernel_members.a
  )
  if(NOT KERNEL_MANYLINUX)
    return()
  endif()
  set(objects "${directory}/${target}.objects.txt")
  file(GENERATE OUTPUT "${objects}" CONTENT "$<JOIN:$<TARGET_OBJECTS:${target}>,\n>\n")
  add_custom_command(
    TARGET "${target}"
    POST_BUILD
    COMMAND
      "${CMAKE_COMMAND}" -D "LIBRARY=$<TARGET_FILE:${target}>" -D "OBJECTS=${objects}" -D
      "ACCEPTED=${KERNEL_MANYLINUX}" -D "READELF=${CMAKE_READELF}" -D "NM=${CMAKE_NM}" -P
      "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/check.cmake"
    VERBATIM
  )
endfunction()
