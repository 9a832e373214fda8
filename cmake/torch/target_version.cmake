include_guard(GLOBAL)

#[=======================================================================[.rst:
Spell a version of the LibTorch stable ABI as ``TORCH_TARGET_VERSION`` has it, and refuse headers that are older.

  kernel_torch_target_version(<out-var> STABLE_ABI <major.minor> HEADERS <version>)
#]=======================================================================]
function(kernel_torch_target_version out_var)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_torch_target_version")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "STABLE_ABI;HEADERS" "")
  if(NOT arg_STABLE_ABI MATCHES "^([0-9]+)\\.([0-9]+)$")
    message(FATAL_ERROR "'${arg_STABLE_ABI}' is not a version such as 2.10")
  endif()
  math(EXPR target "${CMAKE_MATCH_1} << 56 | ${CMAKE_MATCH_2} << 48" OUTPUT_FORMAT HEXADECIMAL)
  # Headers before 2.15 take a target above their own version without a word.
  if(arg_HEADERS VERSION_LESS arg_STABLE_ABI)
    message(
      FATAL_ERROR
      "the kernel targets the stable ABI of torch ${arg_STABLE_ABI}, and the torch found is ${arg_HEADERS}\n"
      "  help: install torch>=${arg_STABLE_ABI}"
    )
  endif()
  set("${out_var}" "${target}" PARENT_SCOPE)
endfunction()
