include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/version.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../cuda/capabilities.cmake")

#[=======================================================================[.rst:
Tell whether a component or an extension is compiled, by the toolkit, the torch and the system that were found; say so if it is left out.

  kernel_when_holds(<out-var> <NAME|EXTENSION> <name> [CUDA_IS <clause>...] [TORCH_IS <clause>...] [SYSTEM_IS <system>...]
    [CAPABILITIES <table of kernel_cuda_capabilities>] [COMPILED <yes|no>]
  )

CAPABILITIES has the capabilities of which one is asked for, where they are compiled; COMPILED says the same for ROCm, whose toolkits
compile the same.
#]=======================================================================]
function(kernel_when_holds out_var)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_when_holds")
  cmake_parse_arguments(
    PARSE_ARGV 1
    arg
    ""
    "NAME;EXTENSION;COMPILED"
    "CUDA_IS;TORCH_IS;SYSTEM_IS;CAPABILITIES"
  )
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  set(unmet)
  if(DEFINED arg_CUDA_IS)
    kernel_when_version(holds "${CMAKE_CUDA_COMPILER_VERSION}" ${arg_CUDA_IS})
    if(NOT holds)
      list(APPEND unmet "CUDA ${CMAKE_CUDA_COMPILER_VERSION} is not ${arg_CUDA_IS}")
    endif()
  endif()
  if(DEFINED arg_TORCH_IS)
    get_target_property(torch kernel::torch KERNEL_VERSION)
    kernel_when_version(holds "${torch}" ${arg_TORCH_IS})
    if(NOT holds)
      list(APPEND unmet "torch ${torch} is not ${arg_TORCH_IS}")
    endif()
  endif()
  string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}-${CMAKE_SYSTEM_NAME}" system)
  string(REGEX REPLACE "^arm64" "aarch64" system "${system}")
  string(REGEX REPLACE "^amd64" "x86_64" system "${system}")
  if(DEFINED arg_SYSTEM_IS AND NOT system IN_LIST arg_SYSTEM_IS)
    list(APPEND unmet "${system} is not ${arg_SYSTEM_IS}")
  endif()
  if(DEFINED arg_CAPABILITIES)
    kernel_cuda_capabilities(found TOOLKIT "${CMAKE_CUDA_COMPILER_VERSION}" TABLE ${arg_CAPABILITIES})
    set(arg_COMPILED "${found_COMPILED}")
    if("${arg_COMPILED}" STREQUAL "")
      set(arg_COMPILED no)
    endif()
  endif()
  if("${arg_COMPILED}" STREQUAL "no")
    list(APPEND unmet "it is not compiled for what it asks for")
  endif()

  if(NOT unmet)
    if(DEFINED arg_NAME)
      set_property(GLOBAL APPEND PROPERTY KERNEL_WHEN_HELD "${arg_NAME}")
    endif()
    set("${out_var}" TRUE PARENT_SCOPE)
    return()
  endif()
  list(JOIN unmet ", " unmet)
  set(what "kernel '${arg_NAME}'")
  if(DEFINED arg_EXTENSION)
    set(what "extension '${arg_EXTENSION}'")
    set_property(GLOBAL APPEND PROPERTY KERNEL_EXTENSIONS_LEFT_OUT "${arg_EXTENSION}")
  endif()
  message(NOTICE "${what} is left out: ${unmet}")
  set("${out_var}" FALSE PARENT_SCOPE)
endfunction()
