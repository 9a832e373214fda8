include_guard(GLOBAL)

#[=======================================================================[.rst:
Find the Python that runs scripts of this project, where one is to run.

  kernel_python_interpreter(<out-var>)

It is ``Python_EXECUTABLE``, where that is set. CMake starts it seven times to find out what it is, which most projects can do without.
#]=======================================================================]
function(kernel_python_interpreter out_var)
  get_property(python GLOBAL PROPERTY KERNEL_PYTHON_INTERPRETER)
  if(NOT python)
    find_package(Python 3.9 REQUIRED COMPONENTS Interpreter)
    set(python "${Python_EXECUTABLE}")
    set_property(GLOBAL PROPERTY KERNEL_PYTHON_INTERPRETER "${python}")
  endif()
  set("${out_var}" "${python}" PARENT_SCOPE)
endfunction()
