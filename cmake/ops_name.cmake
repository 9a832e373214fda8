include_guard(GLOBAL)

#[=======================================================================[.rst:
Give the library of a kernel the name of its ops, which changes with every edit: to the linker, so that no other object depends on it.

  kernel_ops_name(<target> <ops> [EVERYWHERE] [SOURCES <file>...])

The library is ``<ops>.so``, and ``kernel_ops_name`` in it is that text, which the macros of ``registration.h`` register under.
Sources of the kernel that use the name in another way are compiled with it as ``KERNEL_OPS``: EVERYWHERE says all of them.
#]=======================================================================]
function(kernel_ops_name target ops)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_ops_name")
  cmake_parse_arguments(PARSE_ARGV 2 arg "EVERYWHERE" "" "SOURCES")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  set_target_properties("${target}" PROPERTIES OUTPUT_NAME "${ops}")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/ops_name.cpp")
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
    foreach(source IN LISTS arg_SOURCES)
      set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_DEFINITIONS "KERNEL_OPS=${ops}")
    endforeach()
  endif()
endfunction()
