include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/json.cmake")

#[=======================================================================[.rst:
Write down which architectures are compiled: in ``kernel-plan.json`` of the build directory, component by component, and in the
metadata.json of the package, all of them.

  kernel_plan_write(<target> MODULE <module> METADATA <template>)

To be called after the components.
#]=======================================================================]
function(kernel_plan_write target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_plan_write")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODULE;METADATA" "")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  get_property(architectures TARGET "${target}" PROPERTY KERNEL_ARCHITECTURES)
  list(REMOVE_DUPLICATES architectures)
  list(SORT architectures COMPARE NATURAL)
  kernel_plan_json(KERNEL_ARCHITECTURES ${architectures})
  get_property(toolkit TARGET "${target}" PROPERTY KERNEL_TOOLKIT)
  get_property(components TARGET "${target}" PROPERTY KERNEL_COMPONENTS)
  get_property(left_out TARGET "${target}" PROPERTY KERNEL_LEFT_OUT)
  file(
    CONFIGURE
    OUTPUT "${CMAKE_BINARY_DIR}/kernel-plan.json"
    CONTENT
      [[
{
  "toolkit": "@toolkit@",
  "archs": @KERNEL_ARCHITECTURES@,
  "components": [
    @components@
  ],
  "left-out": [
    @left_out@
  ]
}
]]
    @ONLY
  )

  configure_file("${arg_METADATA}" metadata.json @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/metadata.json" DESTINATION "${arg_MODULE}")
endfunction()
