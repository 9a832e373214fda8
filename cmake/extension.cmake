include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/portable.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/reproducible.cmake")

# No source is a module of C++20; CMake's look for them runs each through the compiler once more, where that is new, and
# adds options with which ccache keeps nothing.
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
# A project that runs no Python takes one, too: what is never read, CMake warns of.
set(kernel_python_given "${Python_EXECUTABLE}")

#[=======================================================================[.rst:
Make the library of a kernel, without sources yet, and install it into its Python package.

  kernel_extension(<target> MODULE <module> CXX_STANDARD <17|20>)

The file is in ``<module>``, and ``kernel_ops_name`` gives it its name. It needs nothing of Python, which only loads it.
#]=======================================================================]
function(kernel_extension target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_extension")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODULE;CXX_STANDARD" "")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(keyword IN ITEMS MODULE CXX_STANDARD)
    if(NOT arg_${keyword})
      message(FATAL_ERROR "${keyword} is missing")
    endif()
  endforeach()

  add_library("${target}" MODULE)
  set_target_properties(
    "${target}"
    PROPERTIES
      PREFIX ""
      SUFFIX ".so"
      POSITION_INDEPENDENT_CODE ON
      LINKER_LANGUAGE CXX
      # The library finds torch because Python has loaded it: a path in it would be one of this machine.
      BUILD_WITH_INSTALL_RPATH ON
      INSTALL_RPATH ""
      INSTALL_RPATH_USE_LINK_PATH OFF
  )
  if("install-rpath" IN_LIST KERNEL_WITHOUT_RULES)
    set_target_properties("${target}" PROPERTIES BUILD_WITH_INSTALL_RPATH OFF)
  endif()
  foreach(language IN ITEMS CXX CUDA HIP OBJCXX)
    set_target_properties(
      "${target}"
      PROPERTIES
        "${language}_STANDARD" "${arg_CXX_STANDARD}"
        "${language}_STANDARD_REQUIRED" ON
        "${language}_EXTENSIONS" OFF
    )
  endforeach()
  if(IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/csrc")
    target_include_directories("${target}" PRIVATE csrc)
  endif()
  kernel_portable("${target}")
  kernel_reproducible("${target}")
  # Modes are written out because CMake's own differ between distributions.
  install(
    TARGETS "${target}"
    LIBRARY DESTINATION "${arg_MODULE}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  )
endfunction()
