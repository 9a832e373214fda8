include_guard(GLOBAL)

#[=======================================================================[.rst:
Make an empty library to link to in place of one of PyTorch's, so that the linker writes its name down.

  kernel_torch_stand_in(<out-var> <name>)

What is in the real library is found when the kernel is loaded; with the stand-in, a kernel links to the same bytes whether
PyTorch is a build for its backend or not.
#]=======================================================================]
function(kernel_torch_stand_in out_var name)
  set(target "kernel_${name}_stand_in")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/stand_in/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// nothing\n")
  add_library("${target}" SHARED "${source}")
  set_target_properties(
    "${target}"
    PROPERTIES OUTPUT_NAME "${name}" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/stand_in"
  )
  target_link_options("${target}" PRIVATE -nostdlib)
  set("${out_var}" "${target}" PARENT_SCOPE)
endfunction()
