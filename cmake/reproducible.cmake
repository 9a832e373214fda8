include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/prefix_map.cmake")

#[=======================================================================[.rst:
Make the same sources give the same library, one that lives beside others in a process.

  kernel_reproducible(<target>)

Paths of this machine are mapped away and local symbols, which name temporary files of nvcc, are left out. No symbol is
unique (``STB_GNU_UNIQUE``): two kernels with the same inline variable must not share it.

``KERNEL_WITHOUT_RULES`` names rules (``prefix-map``, ``random-seed``, ``strip``, ``install-rpath``) to leave out, to see what
they close.
#]=======================================================================]
function(kernel_reproducible target)
  kernel_prefix_map("${target}" "${CMAKE_SOURCE_DIR}" .)
  kernel_prefix_map("${target}" "${CMAKE_BINARY_DIR}" build)
  if(APPLE)
    return()
  endif()
  if(NOT "strip" IN_LIST KERNEL_WITHOUT_RULES)
    target_link_options("${target}" PRIVATE LINKER:-s)
  endif()
  # Other compilers make no unique symbols and do not know the flag.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(
      "${target}"
      PRIVATE
        $<$<COMPILE_LANGUAGE:C,CXX>:-fno-gnu-unique>
        $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-gnu-unique>
    )
  endif()
endfunction()
