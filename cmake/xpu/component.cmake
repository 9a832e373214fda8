include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/../sources.cmake")

#[=======================================================================[.rst:
Add the sources of one ``[kernel.*]`` for XPU.

  kernel_xpu_component(<target> NAME <name> [OBJECTS_OF <name>]
    SOURCES <file>... [INCLUDE_DIRS <directory>...] [CXX_FLAGS <flag>...] [SYCL_FLAGS <flag>...]
    TARGETS <SYCL target>... DEVICES <device>...
  )

C++ sources are SYCL: they are compiled for the host and for the targets, ahead of time for the devices.
#]=======================================================================]
function(kernel_xpu_component target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_xpu_component")
  cmake_parse_arguments(
    PARSE_ARGV 1
    arg
    ""
    "NAME;OBJECTS_OF"
    "SOURCES;INCLUDE_DIRS;CXX_FLAGS;SYCL_FLAGS;TARGETS;DEVICES"
  )
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  list(JOIN arg_TARGETS "," targets)
  list(JOIN arg_DEVICES "," devices)
  set(sycl -fsycl "-fsycl-targets=${targets}")

  target_compile_definitions("${target}" PRIVATE XPU_KERNEL USE_XPU)
  target_link_options(
    "${target}"
    PRIVATE ${sycl} "SHELL:-Xsycl-target-backend=spir64_gen \"-device ${devices}\""
  )
  target_link_libraries("${target}" PRIVATE DNNL::dnnl)
  set(objects)
  if(DEFINED arg_OBJECTS_OF)
    set(objects OBJECTS_OF "${arg_OBJECTS_OF}")
  endif()
  kernel_sources(
    "${target}"
    ${objects}
    SOURCES ${arg_SOURCES}
    INCLUDE_DIRS ${arg_INCLUDE_DIRS}
    C_FLAGS ${arg_CXX_FLAGS}
    # Division and square root as IEEE 754 has them, which is not the default on a device.
    CXX_FLAGS
      ${sycl}
      -foffload-fp32-prec-div
      -foffload-fp32-prec-sqrt
      ${arg_CXX_FLAGS}
      ${arg_SYCL_FLAGS}
  )
endfunction()
