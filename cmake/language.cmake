include_guard(GLOBAL)

#[=======================================================================[.rst:
Tell the language of a source by its extension; empty for what no compiler reads, such as a header.

  kernel_language(<out-var> <file>)
#]=======================================================================]
function(kernel_language out_var source)
  cmake_path(GET source EXTENSION LAST_ONLY extension)
  if(extension MATCHES "^\\.(cpp|cc|cxx|c\\+\\+|C)$")
    set(language CXX)
  elseif(extension STREQUAL ".c")
    set(language C)
  elseif(extension STREQUAL ".cu")
    set(language CUDA)
  elseif(extension STREQUAL ".hip")
    set(language HIP)
  elseif(extension STREQUAL ".m")
    set(language OBJC)
  elseif(extension STREQUAL ".mm")
    set(language OBJCXX)
  else()
    set(language "")
  endif()
  set("${out_var}" "${language}" PARENT_SCOPE)
endfunction()
