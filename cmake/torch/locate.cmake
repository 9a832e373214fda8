include_guard(GLOBAL)

#[=======================================================================[.rst:
Find the directory of the Python package ``torch``, without importing it.

  kernel_torch_locate(<out-var>)

It is ``KERNEL_TORCH_DIR``, the one that an entry of ``CMAKE_PREFIX_PATH`` belongs to, or the one ``Python_EXECUTABLE`` would import.
#]=======================================================================]
function(kernel_torch_locate out_var)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_torch_locate")
  set(KERNEL_TORCH_DIR "" CACHE PATH "Directory of the Python package torch; empty: found")
  set(candidates "${KERNEL_TORCH_DIR}")
  foreach(path IN LISTS CMAKE_PREFIX_PATH)
    # torch.utils.cmake_prefix_path is <torch>/share/cmake; scikit-build-core names site-packages.
    list(APPEND candidates "${path}/../.." "${path}/torch")
  endforeach()
  set(script "from importlib.util import find_spec\nspec = find_spec('torch')\n")
  string(APPEND script "print(spec.submodule_search_locations[0] if spec else '')")
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "${script}"
    OUTPUT_VARIABLE importable
    OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY
  )
  foreach(directory IN LISTS candidates importable)
    if(EXISTS "${directory}/version.py" AND IS_DIRECTORY "${directory}/include/torch")
      file(REAL_PATH "${directory}" directory)
      set("${out_var}" "${directory}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(
    FATAL_ERROR
    "${Python_EXECUTABLE} has no torch\n"
    "  help: install torch into that Python, or name its folder with -DKERNEL_TORCH_DIR=…"
  )
endfunction()
