include_guard(GLOBAL)

#[=======================================================================[.rst:
Compile the objects of components as the kernel itself: with its definitions, options, include directories and standards.

  kernel_objects_finish(<target>)

To be called when the target has all of them.
#]=======================================================================]
function(kernel_objects_finish target)
  set(
    properties
    COMPILE_DEFINITIONS
    COMPILE_OPTIONS
    INCLUDE_DIRECTORIES
    LINK_LIBRARIES
    POSITION_INDEPENDENT_CODE
    CUDA_ARCHITECTURES
    CUDA_RUNTIME_LIBRARY
    HIP_ARCHITECTURES
  )
  foreach(language IN ITEMS CXX CUDA HIP OBJCXX)
    list(
      APPEND properties
      "${language}_STANDARD"
      "${language}_STANDARD_REQUIRED"
      "${language}_EXTENSIONS"
    )
  endforeach()
  get_property(targets TARGET "${target}" PROPERTY KERNEL_OBJECT_TARGETS)
  foreach(objects IN LISTS targets)
    foreach(property IN LISTS properties)
      get_property(is_set TARGET "${target}" PROPERTY "${property}" SET)
      if(is_set)
        get_property(value TARGET "${target}" PROPERTY "${property}")
        set_property(TARGET "${objects}" PROPERTY "${property}" "${value}")
      endif()
    endforeach()
  endforeach()
endfunction()
