include_guard(GLOBAL)

#[=======================================================================[.rst:
Refuse a build in which every component was left out.

  kernel_when_any()

To be called after the components, where each of them has a condition.
#]=======================================================================]
function(kernel_when_any)
  get_property(held GLOBAL PROPERTY KERNEL_WHEN_HELD)
  if(NOT held)
    message(
      FATAL_ERROR
      "every component of this kernel is left out here, so nothing would be compiled\n"
      "  help: build with another toolkit, torch or system, or change the 'when' of a component in build.toml"
    )
  endif()
endfunction()
