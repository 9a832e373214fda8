include_guard(GLOBAL)

#[=======================================================================[.rst:
Link a target to empty libraries in place of PyTorch's, so that the linker writes their names down.

  kernel_torch_stand_ins(<target> <PRIVATE|INTERFACE> <name>...)

What is in the real libraries is found when the kernel is loaded. With stand-ins, a kernel links to the same bytes whatever build
of PyTorch is here, and the linker does not read 180,000 names of symbols for it, which takes 0.2 s.
#]=======================================================================]
function(kernel_torch_stand_ins target scope)
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/stand_in")
  if(NOT TARGET kernel_torch_nothing)
    file(CONFIGURE OUTPUT "${directory}/nothing.cpp" CONTENT "// nothing\n")
    add_library(kernel_torch_nothing OBJECT "${directory}/nothing.cpp")
    set_target_properties(kernel_torch_nothing PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  set(prefix "")
  if(scope STREQUAL "INTERFACE")
    set(prefix "INTERFACE_")
  endif()
  set(libraries "${ARGN}")
  foreach(name IN LISTS libraries)
    set(stand_in "kernel_${name}_stand_in")
    if(NOT TARGET "${stand_in}")
      add_library("${stand_in}" SHARED $<TARGET_OBJECTS:kernel_torch_nothing>)
      set_target_properties(
        "${stand_in}"
        PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME "${name}" LIBRARY_OUTPUT_DIRECTORY "${directory}"
      )
      target_link_options("${stand_in}" PRIVATE -nostdlib)
    endif()
    if(CMAKE_GENERATOR MATCHES "^Ninja")
      # A dependency of the target would hold its compilers back, too.
      set_property(
        TARGET "${target}"
        APPEND
        PROPERTY "${prefix}LINK_DEPENDS" "$<TARGET_FILE:${stand_in}>"
      )
    else()
      add_dependencies("${target}" "${stand_in}")
    endif()
  endforeach()
  # Symbols are looked for only in the libraries that a kernel names, and some compilers leave out those of which nothing is used.
  # One word, since CMake writes equal words once.
  list(TRANSFORM libraries PREPEND "-l")
  list(JOIN libraries "," libraries)
  target_link_directories("${target}" "${scope}" "${directory}")
  target_link_libraries(
    "${target}"
    "${scope}"
    "-Wl,--push-state,--no-as-needed,${libraries},--pop-state"
  )
endfunction()
