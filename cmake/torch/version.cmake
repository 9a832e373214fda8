include_guard(GLOBAL)

#[=======================================================================[.rst:
Read from ``version.py`` which build of PyTorch is in a folder.

  kernel_torch_version(<prefix> <torch directory> [DEVICE <name>])

Sets ``<prefix>_VERSION`` (``2.13.0``), ``<prefix>_BUILD`` (the same with its local tag, such as ``2.13.0+cu130``) and, for a device that
``version.py`` has a version of, such as ``cuda``, ``<prefix>_TOOLKIT`` (that version; empty where PyTorch was built without it).
#]=======================================================================]
function(kernel_torch_version prefix directory)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_torch_version")
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "DEVICE" "")
  file(READ "${directory}/version.py" text)
  if(NOT text MATCHES "__version__ = '(([0-9]+\\.[0-9]+\\.[0-9]+)[^']*)'")
    message(FATAL_ERROR "'${directory}/version.py' does not say which torch it is")
  endif()
  set("${prefix}_BUILD" "${CMAKE_MATCH_1}" PARENT_SCOPE)
  set("${prefix}_VERSION" "${CMAKE_MATCH_2}" PARENT_SCOPE)
  set("${prefix}_TOOLKIT" "" PARENT_SCOPE)
  if(arg_DEVICE AND text MATCHES "\n${arg_DEVICE}[^=\n]*= '([^']+)'")
    set("${prefix}_TOOLKIT" "${CMAKE_MATCH_1}" PARENT_SCOPE)
  endif()
endfunction()
