include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/language.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/random_seed.cmake")

#[=======================================================================[.rst:
Add sources to a target, with include directories and flags that hold for these sources alone.

  kernel_sources(<target>
    [OBJECTS_OF <name>]
    SOURCES <file>...
    [INCLUDE_DIRS <directory>...]
    [<LANGUAGE>_FLAGS <flag>...]
  )

``<LANGUAGE>`` is C, CXX, CUDA, HIP, OBJC or OBJCXX; a source takes the flags of its own language. Headers are only listed.
A source that is added twice is compiled once, with the include directories and flags of both; with OBJECTS_OF, once for each name.
#]=======================================================================]
function(kernel_sources target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_sources")
  set(
    flags
    C_FLAGS
    CXX_FLAGS
    CUDA_FLAGS
    HIP_FLAGS
    OBJC_FLAGS
    OBJCXX_FLAGS
  )
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OBJECTS_OF" "SOURCES;INCLUDE_DIRS;${flags}")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  foreach(directory IN LISTS arg_INCLUDE_DIRS)
    cmake_path(ABSOLUTE_PATH directory NORMALIZE)
    list(APPEND directories "${directory}")
  endforeach()
  if(DEFINED arg_OBJECTS_OF)
    kernel_objects_add(target "${target}" "${arg_OBJECTS_OF}")
    kernel_objects_only(directories "${arg_OBJECTS_OF}" ${directories})
    foreach(list IN LISTS flags)
      kernel_objects_only(arg_${list} "${arg_OBJECTS_OF}" ${arg_${list}})
    endforeach()
  endif()
  get_target_property(known "${target}" SOURCES)
  foreach(source IN LISTS arg_SOURCES)
    kernel_language(language "${source}")
    if(NOT source IN_LIST known)
      target_sources("${target}" PRIVATE "${source}")
      if(language)
        kernel_random_seed("${source}" "${language}" ${arg_OBJECTS_OF})
      endif()
    endif()
    if(language)
      set_property(SOURCE "${source}" APPEND PROPERTY INCLUDE_DIRECTORIES "${directories}")
      set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS "${arg_${language}_FLAGS}")
    endif()
  endforeach()
endfunction()
