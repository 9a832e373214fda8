include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/defined.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/loader.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/members.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/moved.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/paths.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/stub.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/symbols.cmake")

#[=======================================================================[.rst:
Make a directory of libraries to link to in place of those of this machine: glibc, libgcc and libstdc++ as manylinux_2_28 has them.

  kernel_portable_libraries(<directory> SHIMS <archive> COMPILER <command>...)

SHIMS names the archive to look into before a library has only a newer version of a symbol, or none.
#]=======================================================================]
function(kernel_portable_libraries directory)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_portable_libraries")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SHIMS" "COMPILER")
  kernel_portable_loader(loader)
  set(
    moved
    libpthread.so.0
    libdl.so.2
    librt.so.1
    libutil.so.1
    libanl.so.1
    libresolv.so.2
  )
  set(
    names
    libc.so.6
    libm.so.6
    libmvec.so.1
    "${loader}"
    libgcc_s.so.1
    libstdc++.so.6
  )
  kernel_portable_paths(
    path
    COMPILER ${arg_COMPILER}
    NAMES ${names} ${moved} libstdc++.a libgcc.a libc_nonshared.a
  )
  file(MAKE_DIRECTORY "${directory}")

  # What the shims define.
  set(shims "__libc_single_threaded|__isoc23_[a-z_]+|[fl]?stat(64)?|fstatat(64)?|mknod(at)?|gettid")
  string(
    APPEND shims
    "|pthread_(cond_clockwait|mutex_clocklock|rwlock_clock(rd|wr)lock)|sem_clockwait"
  )
  string(
    APPEND shims
    "|__cxa_call_terminate|_ZSt21ios_base_library_initv|_ZSt28__throw_bad_array_new_lengthv"
  )
  string(
    APPEND shims
    "|_ZSt15__try_use_facetI.*|_ZNSt15__exception_ptr13exception_ptr(9_M_addref|10_M_release)Ev"
  )
  set(members)
  set(elsewhere_libstdc++.so.6)
  set(elsewhere_libgcc_s.so.1)
  if(path_libstdc++.a)
    set(members libkernel_members.a)
    kernel_portable_members("${directory}/${members}" FROM "${path_libstdc++.a}")
    kernel_portable_defined(elsewhere_libstdc++.so.6 "${directory}/${members}")
  endif()
  if(path_libgcc.a)
    kernel_portable_defined(elsewhere_libgcc_s.so.1 "${path_libgcc.a}")
  endif()
  set(stubs)
  set(commands)
  foreach(name IN ITEMS libc.so.6 ${names} ${moved})
    if(NOT path_${name} OR "${name}" IN_LIST stubs)
      continue()
    endif()
    kernel_portable_symbols(symbols "${path_${name}}" WITHOUT ${elsewhere_${name}} WITHOUT_ALL "${shims}")
    if(name STREQUAL "libc.so.6")
      foreach(other IN LISTS moved)
        kernel_portable_moved(before_${other} FROM "${other}" AMONG ${symbols_DATED})
        list(REMOVE_ITEM symbols_function ${before_${other}})
        list(REMOVE_ITEM symbols_object ${before_${other}})
      endforeach()
    endif()
    kernel_portable_stub(
      "${directory}/${name}.s"
      function ${symbols_function} ${before_${name}}
      object ${symbols_object}
      tls_object ${symbols_tls_object}
    )
    list(APPEND stubs "${name}")
    # Names without folders: a comma in one would end an option of the linker.
    list(
      APPEND commands
      COMMAND
      ${arg_COMPILER}
      -shared
      -nostdlib
      -o
      "${name}"
      "-Wl,-soname,${name}"
      "-Wl,--version-script,${name}.s.map"
      "${name}.s"
    )
  endforeach()
  # As in a pipeline: at the same time.
  execute_process(${commands} WORKING_DIRECTORY "${directory}" COMMAND_ERROR_IS_FATAL ANY)

  set(needed)
  foreach(name IN LISTS moved)
    if("${name}" IN_LIST stubs)
      string(REGEX REPLACE "\\.so\\..*" ".so" plain "${name}")
      file(WRITE "${directory}/${plain}" "GROUP ( ${name} )\n")
      list(APPEND needed "${name}")
    endif()
  endforeach()
  list(JOIN needed " " needed)
  set(vector)
  if(path_libmvec.so.1)
    set(vector "AS_NEEDED ( libmvec.so.1 )")
  endif()
  set(nonshared)
  if(path_libc_nonshared.a)
    file(COPY "${path_libc_nonshared.a}" DESTINATION "${directory}")
    set(nonshared libc_nonshared.a)
  endif()
  file(WRITE "${directory}/libm.so" "GROUP ( libm.so.6 ${vector} )\n")
  file(WRITE "${directory}/libgcc_s.so" "GROUP ( libgcc_s.so.1 -lgcc )\n")
  file(WRITE "${directory}/libstdc++.so" "GROUP ( ${arg_SHIMS} libstdc++.so.6 ${members} )\n")
  # The last, since the build takes it for all of them.
  file(
    WRITE "${directory}/libc.so"
    "GROUP ( ${arg_SHIMS} libc.so.6 ${nonshared} AS_NEEDED ( ${needed} ${loader} ) )\n"
  )
endfunction()
