include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/note.cmake")

#[=======================================================================[.rst:
Note, and say, that a component is left out because the toolkit is too old for it.

  kernel_plan_left_out(<target> NAME <name> MINVER <version> TOOLKIT <toolkit>)
#]=======================================================================]
function(kernel_plan_left_out target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;MINVER;TOOLKIT" "")
  message(
    NOTICE
    "kernel '${arg_NAME}' is left out: this is ${arg_TOOLKIT}, and it needs ${arg_MINVER}"
  )
  set(entry "{\"name\": \"${arg_NAME}\", \"minver\": \"${arg_MINVER}\"}")
  kernel_plan_note("${target}" KERNEL_LEFT_OUT "${entry}")
  set_property(TARGET "${target}" PROPERTY KERNEL_TOOLKIT "${arg_TOOLKIT}")
endfunction()
