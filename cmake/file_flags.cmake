include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/language.cmake")

#[=======================================================================[.rst:
Give flags to single sources, after those that they have.

  kernel_file_flags([OBJECTS_OF <name>] SOURCES <file>... FILE_FLAGS <flag>...)

With OBJECTS_OF, only where they are compiled into the objects of that component.
#]=======================================================================]
function(kernel_file_flags)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_file_flags")
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OBJECTS_OF" "SOURCES;FILE_FLAGS")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  if(DEFINED arg_OBJECTS_OF)
    kernel_objects_only(arg_FILE_FLAGS "${arg_OBJECTS_OF}" ${arg_FILE_FLAGS})
  endif()
  foreach(source IN LISTS arg_SOURCES)
    # What is compiled for ROCm is a translation.
    get_property(translation SOURCE "${source}" PROPERTY KERNEL_TRANSLATION)
    if(translation)
      set(source "${translation}")
    endif()
    kernel_language(language "${source}")
    if(language)
      set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS "${arg_FILE_FLAGS}")
    endif()
  endforeach()
endfunction()
