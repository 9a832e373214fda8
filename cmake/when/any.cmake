include_guard(GLOBAL)

#[=======================================================================[.rst:
Refuse a build in which every component was left out, or every one of those that are named.

  kernel_when_any([AMONG <name>...])

To be called after the components, where each of them has a condition. Without AMONG, it is about all.
#]=======================================================================]
function(kernel_when_any)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_when_any")
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "AMONG")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_property(held GLOBAL PROPERTY KERNEL_WHEN_HELD)
  set(what "every component of this kernel is left out")
  if(DEFINED arg_AMONG)
    list(JOIN arg_AMONG ", " what)
    string(PREPEND what "every component of one library is left out: ")
    set(given ${held})
    set(held)
    foreach(name IN LISTS arg_AMONG)
      if(name IN_LIST given)
        list(APPEND held "${name}")
      endif()
    endforeach()
  endif()
  if(NOT held)
    message(
      FATAL_ERROR
      "${what} here, so nothing would be compiled\n"
      "  help: build with another toolkit, torch or system, or change the 'when' of a component in build.toml"
    )
  endif()
endfunction()
