include_guard(GLOBAL)

#[=======================================================================[.rst:
Compile one Metal shader for the Metal library of a target.

  kernel_metal_air(<target> <file> [INCLUDE_DIRS <directory>...] [FILE_FLAGS <flag>...])

The object is named after the whole path: shaders of one name in different folders do not meet.
#]=======================================================================]
function(kernel_metal_air target shader)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "INCLUDE_DIRS;FILE_FLAGS")
  cmake_path(ABSOLUTE_PATH shader OUTPUT_VARIABLE source)
  set(air "${CMAKE_CURRENT_BINARY_DIR}/metal/${shader}.air")
  get_property(made GLOBAL PROPERTY KERNEL_METAL_MADE)
  if(air IN_LIST made)
    # Another library has the shader, too.
    list(LENGTH made number)
    set(air "${CMAKE_CURRENT_BINARY_DIR}/metal/${number}/${shader}.air")
  endif()
  set_property(GLOBAL APPEND PROPERTY KERNEL_METAL_MADE "${air}")
  cmake_path(GET air PARENT_PATH folder)
  file(MAKE_DIRECTORY "${folder}")
  set(include_flags)
  foreach(directory IN LISTS arg_INCLUDE_DIRS)
    cmake_path(ABSOLUTE_PATH directory NORMALIZE)
    list(APPEND include_flags "-I${directory}")
  endforeach()
  add_custom_command(
    OUTPUT "${air}"
    COMMAND
      xcrun -sdk macosx metal "-mmacosx-version-min=${CMAKE_OSX_DEPLOYMENT_TARGET}" -O3
      ${include_flags} ${arg_FILE_FLAGS} -MMD -MF "${air}.d" -c "${source}" -o "${air}"
    DEPENDS "${source}"
    DEPFILE "${air}.d"
    COMMENT "Compiling ${shader}"
    VERBATIM
  )
  set_property(TARGET "${target}" APPEND PROPERTY KERNEL_METAL_AIR "${air}")
endfunction()
