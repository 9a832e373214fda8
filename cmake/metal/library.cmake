include_guard(GLOBAL)

#[=======================================================================[.rst:
Link the shaders of a target to one Metal library and embed it, as a header that makes it.

  kernel_metal_library(<target>)

Sources include ``EMBEDDED_METALLIB_HEADER`` and call ``createLibrary(device, &error)`` of ``EMBEDDED_METALLIB_NAMESPACE``. To be
called after the components.
#]=======================================================================]
function(kernel_metal_library target)
  get_property(objects TARGET "${target}" PROPERTY KERNEL_METAL_AIR)
  if(NOT objects)
    return()
  endif()
  # Two kernels of a process have a namespace each, so it is the name of the ops and not of the target.
  get_target_property(ops "${target}" OUTPUT_NAME)
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/metal")
  set(library "${directory}/${ops}.metallib")
  set(header "${directory}/${ops}_metallib.h")
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed.cmake")
  add_custom_command(
    OUTPUT "${library}"
    COMMAND xcrun -sdk macosx metallib ${objects} -o "${library}"
    DEPENDS ${objects}
    COMMENT "Linking ${ops}.metallib"
    VERBATIM
  )
  add_custom_command(
    OUTPUT "${header}"
    COMMAND
      "${CMAKE_COMMAND}" "-DLIBRARY=${library}" "-DHEADER=${header}" "-DNAMESPACE=${ops}_metal" -P
      "${script}"
    DEPENDS "${library}" "${script}"
    COMMENT "Embedding ${ops}.metallib"
    VERBATIM
  )
  target_sources("${target}" PRIVATE "${header}")
  target_include_directories("${target}" PRIVATE "${directory}")
  target_compile_definitions(
    "${target}"
    PRIVATE
      "EMBEDDED_METALLIB_HEADER=\"${ops}_metallib.h\""
      "EMBEDDED_METALLIB_NAMESPACE=${ops}_metal"
  )
endfunction()
