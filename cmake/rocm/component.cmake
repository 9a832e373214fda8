include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/hipify.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../plan/component.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../sources.cmake")

#[=======================================================================[.rst:
Add the sources of one ``[kernel.*]`` for ROCm.

  kernel_rocm_component(<target> NAME <name> [OBJECTS_OF <name>]
    SOURCES <file>... [INCLUDE_DIRS <directory>...] [CXX_FLAGS <flag>...] [HIP_FLAGS <flag>...]
    ARCHITECTURES <gfx>... [LOST <gfx>...]
  )

``.cu`` sources are translated to HIP first. LOST is what was asked for and is not supported. ``KERNEL_ROCM_ARCHS`` takes the place
of all architectures, for a quick build on one GPU.
#]=======================================================================]
function(kernel_rocm_component target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_rocm_component")
  cmake_parse_arguments(
    PARSE_ARGV 1
    arg
    ""
    "NAME;OBJECTS_OF"
    "SOURCES;INCLUDE_DIRS;CXX_FLAGS;HIP_FLAGS;ARCHITECTURES;LOST"
  )
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(
    KERNEL_ROCM_ARCHS
    ""
    CACHE STRING
    "ROCm architectures to compile for; empty: those of the kernel"
  )
  if(KERNEL_ROCM_ARCHS)
    set(arg_ARCHITECTURES "${KERNEL_ROCM_ARCHS}")
  endif()
  kernel_plan_component(
    "${target}"
    NAME "${arg_NAME}"
    TOOLKIT "HIP ${hip_VERSION}"
    COMPILED ${arg_ARCHITECTURES}
    LOST ${arg_LOST}
    SOURCES ${arg_SOURCES}
  )

  set_target_properties("${target}" PROPERTIES HIP_ARCHITECTURES OFF)
  target_compile_definitions(
    "${target}"
    PRIVATE ROCM_KERNEL USE_ROCM=1 __HIP_PLATFORM_AMD__=1 HIPBLAS_V2
  )
  target_link_libraries("${target}" PRIVATE hip::amdhip64)
  if(DEFINED ENV{ROCM_PATH})
    target_compile_options(
      "${target}"
      PRIVATE "$<$<COMPILE_LANGUAGE:HIP>:--rocm-path=$ENV{ROCM_PATH}>"
    )
  endif()

  kernel_rocm_hipify(sources ${arg_SOURCES})
  foreach(original source IN ZIP_LISTS arg_SOURCES sources)
    if(NOT original STREQUAL source)
      set_property(SOURCE "${original}" PROPERTY KERNEL_TRANSLATION "${source}")
    endif()
  endforeach()
  # A translation stands in another folder than its original, whose neighbours it still includes.
  set(neighbours)
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(GET source PARENT_PATH folder)
    list(APPEND neighbours "${folder}")
  endforeach()
  list(APPEND neighbours ${arg_INCLUDE_DIRS})
  list(REMOVE_DUPLICATES neighbours)
  list(
    TRANSFORM neighbours
    PREPEND "${CMAKE_CURRENT_BINARY_DIR}/hipified/"
    OUTPUT_VARIABLE translated
  )
  list(TRANSFORM arg_ARCHITECTURES PREPEND "--offload-arch=" OUTPUT_VARIABLE architectures)
  set(objects)
  if(DEFINED arg_OBJECTS_OF)
    set(objects OBJECTS_OF "${arg_OBJECTS_OF}")
  endif()
  kernel_sources(
    "${target}"
    ${objects}
    SOURCES ${sources}
    INCLUDE_DIRS ${arg_INCLUDE_DIRS}
    C_FLAGS ${arg_CXX_FLAGS}
    CXX_FLAGS ${arg_CXX_FLAGS}
    HIP_FLAGS ${architectures} ${arg_HIP_FLAGS}
  )
  foreach(source IN LISTS sources)
    kernel_language(language "${source}")
    if(language STREQUAL "HIP")
      set_property(SOURCE "${source}" APPEND PROPERTY INCLUDE_DIRECTORIES ${translated})
    endif()
  endforeach()
endfunction()
