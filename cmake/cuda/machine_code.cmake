include_guard(GLOBAL)

#[=======================================================================[.rst:
Name the machine code that nvcc makes for CUDA capabilities: that of the pair ``8.0:8.6`` is for ``8.6``, and that of ``10.0f:10.3`` is
marked as for the family, ``10.3f``.

  kernel_cuda_machine_code(<out-var> <capability>...)
#]=======================================================================]
function(kernel_cuda_machine_code out_var)
  set(names ${ARGN})
  list(TRANSFORM names REPLACE "^[0-9.]+f:([0-9.]+)$" "\\1f")
  list(TRANSFORM names REPLACE "^[0-9.]+[af]?:" "")
  set("${out_var}" "${names}" PARENT_SCOPE)
endfunction()
