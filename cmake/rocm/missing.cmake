include_guard(GLOBAL)

#[=======================================================================[.rst:
Say that PyTorch found no ROCm, where it looked and how to give it one.

  kernel_rocm_missing()
#]=======================================================================]
function(kernel_rocm_missing)
  if(DEFINED ENV{ROCM_PATH})
    set(looked "ROCM_PATH, which is '$ENV{ROCM_PATH}'")
  else()
    set(looked "/opt/rocm, since ROCM_PATH is not set, and hipcc is not on PATH")
  endif()
  message(
    FATAL_ERROR
    "no ROCm: PyTorch in '${TORCH_INSTALL_PREFIX}' set neither HIP_FOUND nor PYTORCH_FOUND_HIP; it looked in ${looked}\n"
    "  help: install ROCm ('apt-get install rocm-dev', or a container such as rocm/pytorch), or set ROCM_PATH to its folder; "
    "a build of torch for CPU or CUDA does not look for ROCm at all: install torch for ROCm"
  )
endfunction()
