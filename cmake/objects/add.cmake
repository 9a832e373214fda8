include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/only.cmake")

#[=======================================================================[.rst:
Return the target that compiles the sources of one component into objects of their own; they are linked with the kernel.

  kernel_objects_add(<out-var> <target> <name>)

So a source that two components have is compiled for each, with the flags of each. ``kernel_objects_finish`` completes the target.
#]=======================================================================]
function(kernel_objects_add out_var target name)
  set(objects "${target}.${name}")
  if(NOT TARGET "${objects}")
    add_library("${objects}" OBJECT)
    set_target_properties(
      "${objects}"
      PROPERTIES KERNEL_OBJECTS "${name}" KERNEL_LIBRARY "${target}"
    )
    target_sources("${target}" PRIVATE "$<TARGET_OBJECTS:${objects}>")
    set_property(TARGET "${target}" APPEND PROPERTY KERNEL_OBJECT_TARGETS "${objects}")
  endif()
  set("${out_var}" "${objects}" PARENT_SCOPE)
endfunction()
