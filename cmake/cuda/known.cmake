include_guard(GLOBAL)

#[=======================================================================[.rst:
Split CUDA capabilities into those that this nvcc knows and those that it has dropped or not yet heard of.

  kernel_cuda_known(<prefix> <capability>...)

Sets ``<prefix>_KNOWN`` and ``<prefix>_UNKNOWN``.
#]=======================================================================]
function(kernel_cuda_known prefix)
  execute_process(
    COMMAND "${CMAKE_CUDA_COMPILER}" --list-gpu-arch
    OUTPUT_VARIABLE listed
    ERROR_QUIET
  )
  set(known)
  set(unknown)
  foreach(capability IN LISTS ARGN)
    set(list known)
    string(REPLACE ":" ";" halves "${capability}")
    foreach(half IN LISTS halves)
      string(REGEX REPLACE "^([0-9]+)\\.([0-9]).*$" "compute_\\1\\2" name "${half}")
      # A compiler that lists nothing is left to speak for itself.
      if(listed AND NOT listed MATCHES "${name}\n")
        set(list unknown)
      endif()
    endforeach()
    list(APPEND "${list}" "${capability}")
  endforeach()
  set("${prefix}_KNOWN" "${known}" PARENT_SCOPE)
  set("${prefix}_UNKNOWN" "${unknown}" PARENT_SCOPE)
endfunction()
