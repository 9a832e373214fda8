include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/../plan/note.cmake")

#[=======================================================================[.rst:
Let a project of several libraries have one plan of architectures, and one set of generated sources: those of the first target.

  kernel_extensions_join(<target> <extension>...)

To be called after all components.
#]=======================================================================]
function(kernel_extensions_join target)
  foreach(extension IN LISTS ARGN)
    if(NOT TARGET "${extension}")
      continue() # its condition does not hold
    endif()
    set_property(TARGET "${target}" APPEND PROPERTY KERNEL_EXTENSIONS "${extension}")
    get_property(toolkit TARGET "${extension}" PROPERTY KERNEL_TOOLKIT)
    if(toolkit)
      set_property(TARGET "${target}" PROPERTY KERNEL_TOOLKIT "${toolkit}")
    endif()
    get_property(architectures TARGET "${extension}" PROPERTY KERNEL_ARCHITECTURES)
    set_property(TARGET "${target}" APPEND PROPERTY KERNEL_ARCHITECTURES ${architectures})
    foreach(property IN ITEMS KERNEL_COMPONENTS KERNEL_LEFT_OUT)
      get_property(entry TARGET "${extension}" PROPERTY "${property}")
      if(entry)
        kernel_plan_note("${target}" "${property}" "${entry}")
      endif()
    endforeach()
  endforeach()
endfunction()
