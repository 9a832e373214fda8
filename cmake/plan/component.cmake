include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/json.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/note.cmake")

#[=======================================================================[.rst:
Note which architectures a component is compiled for, show what is lost, and refuse a component for which nothing is left.

  kernel_plan_component(<target> NAME <name> TOOLKIT <toolkit> COMPILED <architecture>... [MACHINE_CODE <architecture>...]
    [LOST <architecture>...] [SOURCES <file>...]
  )

MACHINE_CODE is what the objects have; where it is left out, it is what is compiled. Of SOURCES without one for the GPU, nothing is
compiled for any.
#]=======================================================================]
function(kernel_plan_component target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_plan_component")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;TOOLKIT" "COMPILED;MACHINE_CODE;LOST;SOURCES")
  if(NOT DEFINED arg_MACHINE_CODE)
    set(arg_MACHINE_CODE ${arg_COMPILED})
  endif()
  list(JOIN arg_COMPILED " " compiled)
  list(JOIN arg_LOST " " lost)
  if(NOT arg_COMPILED)
    message(
      FATAL_ERROR
      "kernel '${arg_NAME}' asks for ${lost}, and ${arg_TOOLKIT} compiles none of it\n"
      "  help: add an architecture that it supports, or take another toolkit"
    )
  endif()
  set_property(TARGET "${target}" PROPERTY KERNEL_TOOLKIT "${arg_TOOLKIT}")
  set(device ${arg_SOURCES})
  list(FILTER device INCLUDE REGEX "\\.(cu|hip)$")
  if(arg_SOURCES AND NOT device)
    message(STATUS "kernel '${arg_NAME}': no source is for the GPU")
    kernel_plan_note(
      "${target}"
      KERNEL_COMPONENTS
      "{\"name\": \"${arg_NAME}\", \"requested\": [], \"compiled\": [], \"lost\": []}"
    )
    return()
  endif()
  message(STATUS "kernel '${arg_NAME}': ${arg_TOOLKIT} compiles ${compiled}")
  if(arg_LOST)
    message(NOTICE "kernel '${arg_NAME}': asked for, and not compiled by ${arg_TOOLKIT}: ${lost}")
  endif()

  set(requested ${arg_COMPILED} ${arg_LOST})
  list(REMOVE_DUPLICATES requested)
  list(SORT requested COMPARE NATURAL)
  kernel_plan_json(requested ${requested})
  kernel_plan_json(compiled ${arg_COMPILED})
  kernel_plan_json(lost ${arg_LOST})
  set(
    entry
    "{\"name\": \"${arg_NAME}\", \"requested\": ${requested}, \"compiled\": ${compiled}, \"lost\": ${lost}}"
  )
  kernel_plan_note("${target}" KERNEL_COMPONENTS "${entry}")
  set_property(TARGET "${target}" APPEND PROPERTY KERNEL_ARCHITECTURES ${arg_MACHINE_CODE})
endfunction()
