include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/../python_package.cmake")

#[=======================================================================[.rst:
Find tvm-ffi and make it the target ``kernel::tvm_ffi``.

  kernel_tvm_ffi_find()
#]=======================================================================]
function(kernel_tvm_ffi_find)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_tvm_ffi_find")
  kernel_python_package(directory tvm_ffi CONTAINS include/tvm/ffi/c_api.h)
  message(STATUS "Found tvm-ffi: ${directory}")

  add_library(kernel::tvm_ffi INTERFACE IMPORTED)
  set_target_properties(kernel::tvm_ffi PROPERTIES KERNEL_DIR "${directory}")
  target_include_directories(kernel::tvm_ffi INTERFACE "${directory}/include")
  set(dlpack "${directory}/3rdparty/dlpack/include")
  if(IS_DIRECTORY "${dlpack}")
    target_include_directories(kernel::tvm_ffi INTERFACE "${dlpack}")
  endif()
  target_link_libraries(
    kernel::tvm_ffi
    INTERFACE "${directory}/lib/libtvm_ffi${CMAKE_SHARED_LIBRARY_SUFFIX}"
  )
endfunction()
