include_guard(GLOBAL)

#[=======================================================================[.rst:
Spell architectures as a JSON array; their names need no escapes.

  kernel_plan_json(<out-var> [<architecture>...])
#]=======================================================================]
function(kernel_plan_json out_var)
  list(TRANSFORM ARGN REPLACE "^.+$" "\"\\0\"" OUTPUT_VARIABLE names)
  list(JOIN names ", " names)
  set("${out_var}" "[${names}]" PARENT_SCOPE)
endfunction()
