include_guard(GLOBAL)

#[=======================================================================[.rst:
Have the libraries to link to made before a target is linked, and beside the compilers.

  kernel_portable_step(<target> DIR <directory> COMPILER <command>...)
#]=======================================================================]
function(kernel_portable_step target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_portable_step")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DIR" "COMPILER")
  set(made "${arg_DIR}/libc.so")
  if(NOT TARGET kernel_portable_libraries)
    set(KERNEL_COMPILER "${arg_COMPILER}")
    set(text "")
    foreach(
      name
      IN
      ITEMS
        KERNEL_COMPILER
        CMAKE_AR
        CMAKE_NM
        CMAKE_OBJCOPY
        CMAKE_READELF
        CMAKE_SYSTEM_PROCESSOR
        CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES
    )
      string(APPEND text "set(${name} [==[${${name}}]==])\n")
    endforeach()
    set(settings "${arg_DIR}/settings.cmake")
    file(GENERATE OUTPUT "${settings}" CONTENT "${text}") # not touched while it stays the same
    add_custom_command(
      OUTPUT "${made}"
      COMMAND
        "${CMAKE_COMMAND}" -D "SETTINGS=${settings}" -P
        "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/make.cmake"
      DEPENDS "${settings}"
      COMMENT "Making libraries to link to"
      VERBATIM
    )
    add_custom_target(kernel_portable_libraries DEPENDS "${made}")
  endif()
  if(CMAKE_GENERATOR MATCHES "^Ninja")
    # A dependency of the target would hold its compilers back, too.
    set_property(TARGET "${target}" APPEND PROPERTY LINK_DEPENDS "${made}")
  else()
    add_dependencies("${target}" kernel_portable_libraries)
  endif()
endfunction()
