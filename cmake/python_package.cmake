include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/python/interpreter.cmake")

#[=======================================================================[.rst:
Find the folder of a Python package without importing it.

  kernel_python_package(<out-var> <package> CONTAINS <path>)

It is ``KERNEL_<PACKAGE>_DIR``, the one that an entry of ``CMAKE_PREFIX_PATH`` belongs to, or else the one that Python would import; of
these, the first that contains the path.
#]=======================================================================]
function(kernel_python_package out_var package)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_python_package")
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "CONTAINS" "")
  if(DEFINED arg_UNPARSED_ARGUMENTS OR NOT arg_CONTAINS)
    message(FATAL_ERROR "CONTAINS and a path are expected; found: ${ARGN}")
  endif()

  string(TOUPPER "KERNEL_${package}_DIR" override)
  set("${override}" "" CACHE PATH "Folder of the Python package ${package}; empty: found")
  set(candidates "${${override}}")
  foreach(path IN LISTS CMAKE_PREFIX_PATH)
    # A package may name <package>/share/cmake; scikit-build-core names the folder of all packages.
    list(APPEND candidates "${path}/../.." "${path}/${package}")
  endforeach()
  foreach(directory IN LISTS candidates)
    if(directory AND EXISTS "${directory}/${arg_CONTAINS}")
      file(REAL_PATH "${directory}" directory)
      set("${out_var}" "${directory}" PARENT_SCOPE)
      return()
    endif()
  endforeach()

  kernel_python_interpreter(python)
  set(script "from importlib.util import find_spec\nspec = find_spec('${package}')\n")
  string(APPEND script "print(spec.submodule_search_locations[0] if spec else '')")
  execute_process(
    COMMAND "${python}" -c "${script}"
    OUTPUT_VARIABLE directory
    OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY
  )
  if(NOT directory OR NOT EXISTS "${directory}/${arg_CONTAINS}")
    message(
      FATAL_ERROR
      "${python} has no ${package}\n"
      "  help: install ${package} into that Python, or name its folder with -D${override}=…"
    )
  endif()
  file(REAL_PATH "${directory}" directory)
  set("${out_var}" "${directory}" PARENT_SCOPE)
endfunction()
