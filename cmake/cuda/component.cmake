include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/capabilities.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/flags.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/gencode.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/known.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/machine_code.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../plan/component.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../plan/left_out.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../sources.cmake")

#[=======================================================================[.rst:
Add the sources of one ``[kernel.*]`` for CUDA.

  kernel_cuda_component(<target> NAME <name> [OBJECTS_OF <name>]
    SOURCES <file>... [INCLUDE_DIRS <directory>...] [CXX_FLAGS <flag>...] [CUDA_FLAGS <flag>...]
    [MINVER <version>]
    CAPABILITIES <table of kernel_cuda_capabilities>
  )

With a toolkit older than MINVER the component is left out. ``KERNEL_CUDA_ARCHS`` takes the place of every table, for a quick
build on one GPU; ``KERNEL_NVCC_THREADS`` is how many architectures of a source nvcc compiles at once.
#]=======================================================================]
function(kernel_cuda_component target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_cuda_component")
  cmake_parse_arguments(
    PARSE_ARGV 1
    arg
    ""
    "NAME;MINVER;OBJECTS_OF"
    "SOURCES;INCLUDE_DIRS;CXX_FLAGS;CUDA_FLAGS;CAPABILITIES"
  )
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set_target_properties("${target}" PROPERTIES CUDA_ARCHITECTURES OFF CUDA_RUNTIME_LIBRARY Shared)
  target_compile_definitions("${target}" PRIVATE CUDA_KERNEL)
  target_link_libraries("${target}" PRIVATE CUDA::cudart)
  set(version "${CMAKE_CUDA_COMPILER_VERSION}")

  if(version VERSION_LESS "${arg_MINVER}")
    kernel_plan_left_out("${target}" NAME "${arg_NAME}" MINVER "${arg_MINVER}" TOOLKIT "CUDA ${version}")
    return()
  endif()

  kernel_cuda_capabilities(selected TOOLKIT "${version}" TABLE ${arg_CAPABILITIES})
  set(
    KERNEL_CUDA_ARCHS
    ""
    CACHE STRING
    "CUDA capabilities to compile for; empty: those of the kernel"
  )
  if(KERNEL_CUDA_ARCHS)
    set(selected_COMPILED "${KERNEL_CUDA_ARCHS}")
  endif()
  kernel_cuda_known(nvcc ${selected_COMPILED})
  kernel_cuda_machine_code(machine_code ${nvcc_KNOWN})
  kernel_plan_component(
    "${target}"
    NAME "${arg_NAME}"
    TOOLKIT "CUDA ${version}"
    COMPILED ${nvcc_KNOWN}
    MACHINE_CODE ${machine_code}
    LOST ${selected_LOST} ${nvcc_UNKNOWN}
    SOURCES ${arg_SOURCES}
  )

  kernel_cuda_gencode(gencode ${nvcc_KNOWN})
  kernel_cuda_flags(flags ${arg_CUDA_FLAGS})
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
    CXX_FLAGS ${arg_CXX_FLAGS}
    CUDA_FLAGS ${gencode} ${flags}
  )
endfunction()
