include_guard(GLOBAL)

#[=======================================================================[.rst:
Find the folder of the CUDA toolkit; empty when there is none.

  kernel_cuda_root(<out-var>)
#]=======================================================================]
function(kernel_cuda_root out_var)
  foreach(name IN ITEMS CUDAToolkit_ROOT CUDA_HOME CUDA_PATH)
    foreach(root IN ITEMS "${${name}}" "$ENV{${name}}")
      if(root AND EXISTS "${root}/bin/nvcc") # /bin/nvcc would be found without a root
        set("${out_var}" "${root}" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()

  set(root "")
  find_program(KERNEL_NVCC nvcc)
  if(KERNEL_NVCC)
    # nvcc on PATH may be a script that calls another one; the toolkit is where that one is.
    execute_process(
      COMMAND "${KERNEL_NVCC}" --dryrun -x cu -E /dev/null
      OUTPUT_VARIABLE output
      ERROR_VARIABLE output
    )
    if(output MATCHES "#\\$ TOP=([^\n]+)")
      file(REAL_PATH "${CMAKE_MATCH_1}" root)
    else()
      # Debian's has no TOP: the toolkit is /usr, with the script.
      cmake_path(GET KERNEL_NVCC PARENT_PATH root)
      cmake_path(GET root PARENT_PATH root)
      if(NOT EXISTS "${root}/include/cuda_runtime_api.h")
        set(root "")
      endif()
    endif()
  elseif(EXISTS /usr/local/cuda/bin/nvcc)
    set(root /usr/local/cuda)
  endif()
  set("${out_var}" "${root}" PARENT_SCOPE)
endfunction()
