include_guard(GLOBAL)

#[=======================================================================[.rst:
Return what a kernel is linked to in place of the driver's library, which only a machine with a GPU has: an empty one of its name.

  kernel_cuda_driver(<out-var>)

The loader takes the real one.
#]=======================================================================]
function(kernel_cuda_driver out_var)
  if(NOT TARGET kernel_cuda_stand_in)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/stand_in/cuda.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "// nothing\n")
    add_library(kernel_cuda_stand_in SHARED "${source}")
    set_target_properties(
      kernel_cuda_stand_in
      PROPERTIES
        OUTPUT_NAME cuda
        SOVERSION 1
        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/stand_in"
    )
    target_link_options(kernel_cuda_stand_in PRIVATE -nostdlib)
  endif()
  # It has no symbol that anything needs.
  set(
    "${out_var}"
    -Wl,--push-state,--no-as-needed
    kernel_cuda_stand_in
    -Wl,--pop-state
    PARENT_SCOPE
  )
endfunction()
