include_guard(GLOBAL)

#[=======================================================================[.rst:
Read what a PyTorch was built for from its ``version.py``.

  kernel_torch_version(<prefix> <torch directory>)

Sets ``<prefix>_VERSION`` (without the local tag), ``<prefix>_BACKEND`` (cpu, cuda, rocm or xpu) and ``<prefix>_TOOLKIT`` (the version
of CUDA, HIP or oneAPI).
#]=======================================================================]
function(kernel_torch_version prefix directory)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_torch_version")
  file(READ "${directory}/version.py" text)
  if(NOT text MATCHES "__version__ = '([0-9]+\\.[0-9]+\\.[0-9]+)")
    message(FATAL_ERROR "'${directory}/version.py' does not say which torch it is")
  endif()
  set("${prefix}_VERSION" "${CMAKE_MATCH_1}" PARENT_SCOPE)
  set("${prefix}_BACKEND" cpu PARENT_SCOPE)
  set("${prefix}_TOOLKIT" "" PARENT_SCOPE)
  foreach(attribute IN ITEMS cuda hip xpu)
    if(text MATCHES "\n${attribute}[^=\n]*= '([^']+)'")
      set("${prefix}_TOOLKIT" "${CMAKE_MATCH_1}" PARENT_SCOPE)
      string(REPLACE hip rocm backend "${attribute}")
      set("${prefix}_BACKEND" "${backend}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()
