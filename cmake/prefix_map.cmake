include_guard(GLOBAL)

#[=======================================================================[.rst:
Write a directory of this machine as a fixed name into the library (``__FILE__``, debug information).

  kernel_prefix_map(<target> <directory> <name>)
#]=======================================================================]
function(kernel_prefix_map target directory name)
  if("prefix-map" IN_LIST KERNEL_WITHOUT_RULES)
    return()
  endif()
  set(option "-ffile-prefix-map=${directory}=${name}")
  string(REPLACE ">" "$<ANGLE-R>" option "${option}")
  set(hosted "$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang,IntelLLVM>")
  foreach(language IN ITEMS C OBJC OBJCXX HIP)
    list(APPEND hosted "$<COMPILE_LANG_AND_ID:${language},GNU,Clang,AppleClang,IntelLLVM>")
  endforeach()
  list(JOIN hosted "," hosted)
  target_compile_options("${target}" PRIVATE "$<$<OR:${hosted}>:${option}>")
  # nvcc splits what it hands on at commas.
  if(NOT option MATCHES ",")
    target_compile_options("${target}" PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${option}>")
  endif()
endfunction()
