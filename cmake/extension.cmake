include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/portable.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/reproducible.cmake")

#[=======================================================================[.rst:
Make the library of a kernel, without sources yet, and install it into its Python package.

  kernel_extension(<name> MODULE <module>)

The file is ``<module>/<name>.abi3.so``: the limited API of Python 3.9 holds for every later Python.
#]=======================================================================]
function(kernel_extension name)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_extension")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODULE" "")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_MODULE)
    message(FATAL_ERROR "MODULE is missing")
  endif()

  add_library("${name}" MODULE)
  set_target_properties(
    "${name}"
    PROPERTIES
      PREFIX ""
      SUFFIX ".abi3.so"
      POSITION_INDEPENDENT_CODE ON
      LINKER_LANGUAGE CXX
      # The library finds torch because Python has loaded it: a path in it would be one of this machine.
      BUILD_WITH_INSTALL_RPATH ON
      INSTALL_RPATH ""
      INSTALL_RPATH_USE_LINK_PATH OFF
  )
  if(IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/csrc")
    target_include_directories("${name}" PRIVATE csrc)
  endif()
  kernel_portable("${name}")
  kernel_reproducible("${name}")
  # Modes are written out because CMake's own differ between distributions.
  install(
    TARGETS "${name}"
    LIBRARY DESTINATION "${arg_MODULE}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  )
endfunction()
