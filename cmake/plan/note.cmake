include_guard(GLOBAL)

#[=======================================================================[.rst:
Add an entry to a JSON array that is kept in a property of a target.

  kernel_plan_note(<target> <property> <JSON>)
#]=======================================================================]
function(kernel_plan_note target property entry)
  get_target_property(entries "${target}" "${property}")
  if(entries)
    string(PREPEND entry "${entries},\n    ")
  endif()
  set_property(TARGET "${target}" PROPERTY "${property}" "${entry}")
endfunction()
