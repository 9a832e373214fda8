include_guard(GLOBAL)

#[=======================================================================[.rst:
Take the members of a static libstdc++ that can stand beside an older shared one, as an archive.

  kernel_portable_members(<archive> FROM <static libstdc++>)

They keep nothing that two copies could disagree about: the machinery of
exceptions, the standard streams and what tells the facets of a locale apart stay in the shared library.
#]=======================================================================]
function(kernel_portable_members archive)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FROM" "")
  set(
    safe
    assert_fail
    atomic
    cow-stdexcept
    floating_from_chars
    floating_to_chars
    format
    format-inst
    fs_dir
    fs_ops
    fs_path
    functexcept
    memory_resource
    snprintf_lite
    sso_string
    sstream-inst
    string-inst
    syncbuf
    tzdb
    wstring-inst
  )
  get_filename_component(directory "${archive}" DIRECTORY)
  set(directory "${directory}/members")
  file(REMOVE_RECURSE "${directory}")
  file(REMOVE "${archive}")
  file(MAKE_DIRECTORY "${directory}")
  execute_process(
    COMMAND "${CMAKE_AR}" t "${arg_FROM}"
    OUTPUT_VARIABLE names
    COMMAND_ERROR_IS_FATAL ANY
  )
  string(REGEX MATCHALL "[^\n]+" names "${names}")
  set(members)
  foreach(name IN LISTS names)
    # Libtool puts a number before the second member of a name.
    string(REGEX REPLACE "^(lt[0-9]+-)?(.*)\\.o$" "\\2" plain "${name}")
    if(plain IN_LIST safe)
      list(APPEND members "${name}")
    endif()
  endforeach()
  execute_process(
    COMMAND "${CMAKE_AR}" x "${arg_FROM}" ${members}
    WORKING_DIRECTORY "${directory}"
    COMMAND_ERROR_IS_FATAL ANY
  )
  if("atomic.o" IN_LIST members)
    # Of glibc 2.36, which only sources that call it themselves are refused for: see random.cpp.
    execute_process(
      COMMAND "${CMAKE_OBJCOPY}" --redefine-sym arc4random=kernel_random atomic.o
      WORKING_DIRECTORY "${directory}"
      COMMAND_ERROR_IS_FATAL ANY
    )
  endif()
  execute_process(
    COMMAND "${CMAKE_AR}" qcs "${archive}" ${members}
    WORKING_DIRECTORY "${directory}"
    COMMAND_ERROR_IS_FATAL ANY
  )
endfunction()
