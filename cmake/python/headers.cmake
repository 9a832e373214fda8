include_guard(GLOBAL)

#[=======================================================================[.rst:
Compile a library against the headers of Python, which one of its sources includes.

  kernel_python_headers(<target> SOURCE <file:line> USES <name> API <limited|full> HELP <text>)

SOURCE names the place that needs them, USES what is included there, HELP what to do where they are missing. With the limited API
the library keeps to what Python has had since 3.9; with the full one, only its symbols can tell whether it does.
#]=======================================================================]
function(kernel_python_headers target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_python_headers")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE;USES;API;HELP" "")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.SABIModule)
  if(NOT TARGET Python::SABIModule)
    message(
      FATAL_ERROR
      "${arg_SOURCE} uses ${arg_USES}, which needs the headers of Python, and ${Python_EXECUTABLE} has none\n"
      "  help: ${arg_HELP}"
    )
  endif()
  target_link_libraries("${target}" PRIVATE Python::SABIModule)
  if(arg_API STREQUAL "limited")
    target_compile_definitions("${target}" PRIVATE Py_LIMITED_API=0x03090000)
  endif()
  set_target_properties("${target}" PROPERTIES SUFFIX ".abi3.so")
endfunction()
