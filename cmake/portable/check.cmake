# Refuse a library that needs something newer than the policy, with the source that calls it. Run as a script after linking.
#
#   cmake -D LIBRARY=<file> -D OBJECTS=<file that lists objects> -D ACCEPTED=<name> -D READELF=… -D NM=… -P check.cmake

cmake_minimum_required(VERSION 3.21)

if(NOT ACCEPTED MATCHES "^manylinux_([0-9]+)_([0-9]+)$")
  message(FATAL_ERROR "'${ACCEPTED}' is not a manylinux policy, such as 'manylinux_2_28'")
endif()
set(newest_GLIBC "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
set(newest_GLIBCXX 3.4.24)
set(newest_CXXABI 1.3.11)
set(newest_GCC 7.0.0)
set(sets GLIBC)
if(ACCEPTED STREQUAL "manylinux_2_28")
  list(APPEND sets GLIBCXX CXXABI GCC)
endif()

execute_process(
  COMMAND "${READELF}" --dyn-syms --wide "${LIBRARY}"
  OUTPUT_VARIABLE text
  ERROR_QUIET
  COMMAND_ERROR_IS_FATAL ANY
)
string(REGEX MATCHALL " UND [^ @\n]+@[A-Z]+_[0-9.]+" symbols "${text}")
set(report)
set(remedies)
set(needed 0)
foreach(symbol IN LISTS symbols)
  string(REGEX MATCH "^ UND (.+)@(([A-Z]+)_(.+))$" symbol "${symbol}")
  set(name "${CMAKE_MATCH_1}")
  set(version "${CMAKE_MATCH_2}")
  set(kind "${CMAKE_MATCH_3}")
  set(number "${CMAKE_MATCH_4}")
  if(NOT kind IN_LIST sets OR NOT number VERSION_GREATER "${newest_${kind}}")
    continue()
  endif()
  string(APPEND report "${name} (${version}) is newer than ${ACCEPTED}\n")
  if(name MATCHES "^_ZGV")
    # The name of a function on vectors: https://sourceware.org/glibc/wiki/libmvec
    list(APPEND remedies "compile without -Ofast and -ffast-math, which call libmvec")
  elseif(kind STREQUAL "GLIBC")
    list(APPEND remedies "write it another way")
  else()
    list(
      APPEND remedies
      "install the static libstdc++ of this compiler (Fedora: libstdc++-static), or write it another way"
    )
  endif()
  if(kind STREQUAL "GLIBC" AND number VERSION_GREATER "${needed}")
    set(needed "${number}")
  endif()
  set(callers)
  file(STRINGS "${OBJECTS}" objects)
  foreach(object IN LISTS objects)
    execute_process(
      COMMAND "${NM}" --undefined-only "${object}"
      OUTPUT_VARIABLE undefined
      ERROR_QUIET
    )
    if("${undefined}\n" MATCHES " U ${name}\n")
      string(REGEX REPLACE "^.*\\.dir/(\\./)?(.*)\\.o$" "\\2" source "${object}")
      list(APPEND callers "${source}")
    endif()
  endforeach()
  if(NOT callers)
    set(callers "a library that is linked statically")
  endif()
  foreach(caller IN LISTS callers)
    string(APPEND report "  --> ${caller} calls it\n")
  endforeach()
endforeach()
if(report)
  list(REMOVE_DUPLICATES remedies)
  list(JOIN remedies "; " remedies)
  if(needed)
    string(REPLACE "." "_" policy "manylinux_${needed}")
    string(
      APPEND remedies
      ", or accept a newer policy: builder build --manylinux ${policy}, or -DKERNEL_MANYLINUX=${policy} of CMake"
    )
  endif()
  message(FATAL_ERROR "${report}  help: ${remedies}")
endif()
