include_guard(GLOBAL)

#[=======================================================================[.rst:
Let a library run where glibc and libstdc++ are older than the compiler's: manylinux_2_28 has those of GCC 8.

  kernel_portable(<target>)

Headers of newer compilers call a few functions that older runtimes lack, and one such symbol binds the whole library to the newer
ones. They are defined here, hidden, in an archive: the linker takes those that are called and no others.
#]=======================================================================]
function(kernel_portable target)
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    return()
  endif()
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/portable")

  # glibc 2.32; 0 is right whether there is one thread or more.
  set(
    single_threaded
    [[
extern "C" {
extern __attribute__((visibility("hidden"))) char __libc_single_threaded;
char __libc_single_threaded = 0;
}
]]
  )
  # GCC 11, called by allocators.
  set(
    bad_array_new_length
    [[
#include <new>
namespace std {
__attribute__((visibility("hidden"), noreturn)) void __throw_bad_array_new_length();
void __throw_bad_array_new_length() { throw bad_array_new_length(); }
}
]]
  )
  # GCC 9 and, in C++20, GCC 11. Templates of namespace std are visible whatever is said in C++.
  set(
    sstream
    [[
#include <sstream>
#if defined(__GLIBCXX__) && _GLIBCXX_USE_CXX11_ABI
#define HIDDEN(NAME) asm(".hidden " NAME);
template std::ostringstream::basic_ostringstream();
HIDDEN("_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev")
HIDDEN("_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC2Ev")
template std::istringstream::basic_istringstream();
HIDDEN("_ZNSt7__cxx1119basic_istringstreamIcSt11char_traitsIcESaIcEEC1Ev")
HIDDEN("_ZNSt7__cxx1119basic_istringstreamIcSt11char_traitsIcESaIcEEC2Ev")
template std::stringstream::basic_stringstream();
HIDDEN("_ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev")
HIDDEN("_ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC2Ev")
#if __cplusplus > 201703L && _GLIBCXX_RELEASE >= 11
template std::string std::stringbuf::str() const&;
HIDDEN("_ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv")
template std::string std::stringbuf::str() &&;
HIDDEN("_ZNOSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv")
#endif
#endif
]]
  )

  # glibc 2.34, where it moved from libdl to libc, called by torch's stable headers from 2.15 on. It looks from where its caller
  # is, which stays this library.
  set(
    dlsym
    [[
#include <dlfcn.h>
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#ifdef __x86_64__
asm(".symver first_dlsym, dlsym@GLIBC_2.2.5");
#else
asm(".symver first_dlsym, dlsym@GLIBC_2.17");
#endif
extern "C" {
void* first_dlsym(void*, const char*) noexcept;
__attribute__((visibility("hidden"))) void* dlsym(void* handle, const char* name) noexcept {
  return first_dlsym(handle, name);
}
}
#endif
]]
  )

  set(sources)
  foreach(name IN ITEMS single_threaded bad_array_new_length sstream dlsym)
    list(APPEND sources "${directory}/${name}.cpp")
    file(CONFIGURE OUTPUT "${directory}/${name}.cpp" CONTENT "${${name}}" @ONLY)
  endforeach()
  add_library(kernel_portable STATIC EXCLUDE_FROM_ALL "${sources}")
  set_target_properties(
    kernel_portable
    PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_STANDARD 20 ARCHIVE_OUTPUT_DIRECTORY "${directory}"
  )
  kernel_reproducible(kernel_portable)
  target_link_libraries("${target}" PRIVATE kernel_portable)
endfunction()
