include_guard(GLOBAL)

#[=======================================================================[.rst:
Seed the names that a compiler makes up for one source with the source's own name.

  kernel_random_seed(<source> <language> [<objects>])

A source that is compiled into the objects of several components has another seed in each.
#]=======================================================================]
function(kernel_random_seed source language)
  if("random-seed" IN_LIST KERNEL_WITHOUT_RULES)
    return()
  endif()
  string(SHA256 seed "${source}${ARGN}")
  string(SUBSTRING "${seed}" 0 16 seed)
  set(option "-frandom-seed=${seed}")
  if(language STREQUAL "CUDA" AND CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA")
    set(option "-Xcompiler=${option}")
  elseif(NOT CMAKE_${language}_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(ARGN)
    kernel_objects_only(option "${ARGN}" "${option}")
  endif()
  set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_OPTIONS "${option}")
endfunction()
