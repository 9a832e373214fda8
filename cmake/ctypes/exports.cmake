include_guard(GLOBAL)

#[=======================================================================[.rst:
Let a library export functions of C, named by globs, and nothing else, whatever its sources say of visibility.

  kernel_ctypes_exports(<target> <glob>...)
#]=======================================================================]
function(kernel_ctypes_exports target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_ctypes_exports")
  if(NOT ARGN)
    message(FATAL_ERROR "no function is exported: name those that Python calls")
  endif()
  foreach(glob IN LISTS ARGN)
    if(NOT glob MATCHES "^[A-Za-z_][A-Za-z0-9_*?]*$")
      message(FATAL_ERROR "'${glob}' is not a name or a glob of functions of C")
    endif()
  endforeach()

  set(list "${CMAKE_CURRENT_BINARY_DIR}/${target}.exports")
  if(APPLE)
    list(TRANSFORM ARGN PREPEND "_" OUTPUT_VARIABLE names)
    list(JOIN names "\n" text)
    file(CONFIGURE OUTPUT "${list}" CONTENT "@text@\n" @ONLY)
    target_link_options("${target}" PRIVATE "LINKER:-exported_symbols_list,${list}")
  else()
    list(JOIN ARGN ";\n    " text)
    file(
      CONFIGURE
      OUTPUT "${list}"
      CONTENT "{\n  global:\n    @text@;\n  local:\n    *;\n};\n"
      @ONLY
    )
    target_link_options("${target}" PRIVATE "LINKER:--version-script,${list}")
  endif()
  set_property(TARGET "${target}" APPEND PROPERTY LINK_DEPENDS "${list}")
endfunction()
