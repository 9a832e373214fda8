include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/cuda/driver.cmake")

#[=======================================================================[.rst:
Link a kernel to libraries of a toolkit or of the system.

  kernel_libraries(<target> [FIND_PACKAGES <package>...] [TARGETS <target>...] [LINK_NAMES <name>...] [LINK_EXCEPT_MACOS <name>...])

FIND_PACKAGES are found first. LINK_NAMES is what the linker is told, and LINK_EXCEPT_MACOS what it is told but on macOS.
#]=======================================================================]
function(kernel_libraries target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_libraries")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FIND_PACKAGES;TARGETS;LINK_NAMES;LINK_EXCEPT_MACOS")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  set(libraries ${arg_LINK_NAMES})
  if(NOT APPLE)
    list(APPEND libraries ${arg_LINK_EXCEPT_MACOS})
  endif()
  foreach(package IN LISTS arg_FIND_PACKAGES)
    find_package("${package}" REQUIRED CONFIG HINTS "$ENV{ROCM_PATH}")
  endforeach()
  foreach(library IN LISTS arg_TARGETS)
    if(TARGET "${library}")
      list(APPEND libraries "${library}")
    elseif(library STREQUAL "CUDA::cuda_driver")
      kernel_cuda_driver(driver)
      list(APPEND libraries "${driver}")
    else()
      message(
        FATAL_ERROR
        "the kernel is linked to ${library}, and the toolkit found has no such library\n"
        "  help: install that part of the toolkit, or remove the library from 'libraries'"
      )
    endif()
  endforeach()
  target_link_libraries("${target}" PRIVATE ${libraries})
endfunction()
