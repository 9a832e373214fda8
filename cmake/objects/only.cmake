include_guard(GLOBAL)

#[=======================================================================[.rst:
Make values of a property of a source hold in the objects of one component alone.

  kernel_objects_only(<out-var> <name> [<value>...])
#]=======================================================================]
function(kernel_objects_only out_var name)
  set(values)
  foreach(value IN LISTS ARGN)
    string(REPLACE ">" "$<ANGLE-R>" value "${value}")
    list(APPEND values "$<$<STREQUAL:$<TARGET_PROPERTY:KERNEL_OBJECTS>,${name}>:${value}>")
  endforeach()
  set("${out_var}" "${values}" PARENT_SCOPE)
endfunction()
