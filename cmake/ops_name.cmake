include_guard(GLOBAL)

#[=======================================================================[.rst:
Give the library of a kernel the name of its ops, which changes with every edit: to the linker, so that no other object depends on it.

  kernel_ops_name(<target> <ops> [EVERYWHERE] [EXTENSION <name>] [SOURCES <file>...])

The library is ``<ops>.so``, and ``kernel_ops_name`` in it is that text, which the macros of ``registration.h`` register under.
With EXTENSION, it is that of one more library of the project. Sources of the kernel that use the name in another way are compiled with it as ``KERNEL_OPS``: EVERYWHERE says all of them.
#]=======================================================================]
function(kernel_ops_name target ops)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_ops_name")
  cmake_parse_arguments(PARSE_ARGV 2 arg "EVERYWHERE" "EXTENSION" "SOURCES")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  set_target_properties("${target}" PROPERTIES OUTPUT_NAME "${ops}" KERNEL_LIBRARY "${target}")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/ops_name.cpp")
  if(DEFINED arg_EXTENSION)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/extensions/${arg_EXTENSION}/ops_name.cpp")
  endif()
  file(
    CONFIGURE
    OUTPUT "${source}"
    CONTENT
      [[
extern "C" {
__attribute__((visibility("hidden"))) extern const char kernel_ops_name[];
const char kernel_ops_name[] = "@ops@";
}
]]
    @ONLY
  )
  target_sources("${target}" PRIVATE "${source}")
  if(arg_EVERYWHERE)
    target_compile_definitions("${target}" PRIVATE "KERNEL_OPS=${ops}")
  else()
    # A source may be of several libraries, and has the name of each there.
    set(here "$<STREQUAL:$<TARGET_PROPERTY:KERNEL_LIBRARY>,${target}>")
    foreach(source IN LISTS arg_SOURCES)
      set_property(
        SOURCE "${source}"
        APPEND
        PROPERTY COMPILE_DEFINITIONS "$<${here}:KERNEL_OPS=${ops}>"
      )
    endforeach()
  endif()
endfunction()
