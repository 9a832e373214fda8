include_guard(GLOBAL)

#[=======================================================================[.rst:
Install the Python package without the modules of extensions that were left out, and return those that are there, as JSON.

  kernel_extensions_package(<out-var> MODULE <module> [METADATA <template>] EXTENSIONS [<name> <ops>]...)

The metadata.json of the package is made of METADATA, with the JSON in place of ``@KERNEL_EXTENSIONS@``; without METADATA, something else makes
it. To be called after the extensions.
#]=======================================================================]
function(kernel_extensions_package out_var)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_extensions_package")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODULE;METADATA" "EXTENSIONS")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  get_property(absent GLOBAL PROPERTY KERNEL_EXTENSIONS_LEFT_OUT)
  set(entries)
  set(exclude)
  while(arg_EXTENSIONS)
    list(POP_FRONT arg_EXTENSIONS name ops)
    if(name IN_LIST absent)
      list(APPEND exclude REGEX "/${arg_MODULE}/_ops_${name}[.]py$" EXCLUDE)
    else()
      list(APPEND entries "\"${name}\": \"${ops}\"")
    endif()
  endwhile()
  list(JOIN entries ", " entries)
  set(KERNEL_EXTENSIONS "{${entries}}")

  install(DIRECTORY "torch-ext/${arg_MODULE}" DESTINATION . ${exclude})
  if(DEFINED arg_METADATA)
    configure_file("${arg_METADATA}" metadata.json @ONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/metadata.json" DESTINATION "${arg_MODULE}")
  endif()
  set("${out_var}" "${KERNEL_EXTENSIONS}" PARENT_SCOPE)
endfunction()
