include_guard(GLOBAL)

include("${CMAKE_CURRENT_LIST_DIR}/../python/interpreter.cmake")

#[=======================================================================[.rst:
Write sources by a Python script of the project, when it is built: in a folder that has the inputs and nothing else.

  kernel_generate_step(<target> SCRIPT <file> OUTPUTS <file>...
    [ARGS <argument>...] [INPUTS <file>...] [GENERATED_INPUTS <file>...]
  )

The outputs are below ``generated`` of the build folder; other outputs than these are an error, and so is one that is missing.
GENERATED_INPUTS are outputs of other steps. In arguments, ``{archs}`` becomes the architectures that the target is compiled
for, ``{toolkit}`` and ``{torch}`` versions. To be called after all components.
#]=======================================================================]
function(kernel_generate_step target)
  list(APPEND CMAKE_MESSAGE_CONTEXT "kernel_generate_step")
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SCRIPT" "ARGS;INPUTS;GENERATED_INPUTS;OUTPUTS")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()

  kernel_python_interpreter(python)
  get_target_property(archs "${target}" KERNEL_ARCHITECTURES)
  if(NOT archs)
    set(archs)
  endif()
  list(REMOVE_DUPLICATES archs)
  list(SORT archs COMPARE NATURAL)
  list(JOIN archs "," archs)
  get_target_property(toolkit "${target}" KERNEL_TOOLKIT)
  string(REGEX MATCH "[0-9]+\\.[0-9]+" toolkit "${toolkit}")
  set(torch)
  if(TARGET kernel::torch)
    get_target_property(torch kernel::torch KERNEL_VERSION)
    string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch "${torch}")
  endif()
  # One line for each word: CMake hands on neither empty arguments nor "$(" to a command unchanged.
  set(made "${CMAKE_CURRENT_BINARY_DIR}/generated")
  set(step "source=${CMAKE_CURRENT_SOURCE_DIR}\nmade=${made}\nscript=${arg_SCRIPT}\n")
  foreach(argument IN LISTS arg_ARGS)
    foreach(name IN ITEMS archs toolkit torch)
      string(REPLACE "{${name}}" "${${name}}" argument "${argument}")
    endforeach()
    string(APPEND step "argument=${argument}\n")
  endforeach()
  foreach(file IN LISTS arg_INPUTS)
    string(APPEND step "input=${file}\n")
  endforeach()
  foreach(file IN LISTS arg_GENERATED_INPUTS)
    string(APPEND step "generated=${file}\n")
  endforeach()
  foreach(file IN LISTS arg_OUTPUTS)
    string(APPEND step "output=${file}\n")
  endforeach()
  list(GET arg_OUTPUTS 0 first)
  string(SHA256 id "${first}")
  string(SUBSTRING "${id}" 0 12 id)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/generate/${id}")
  file(CONFIGURE OUTPUT "${folder}/step.txt" CONTENT "@step@" @ONLY)

  set(runner "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/run.py")
  list(TRANSFORM arg_INPUTS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  list(TRANSFORM arg_GENERATED_INPUTS PREPEND "${made}/")
  list(TRANSFORM arg_OUTPUTS PREPEND "${made}/")
  add_custom_command(
    OUTPUT ${arg_OUTPUTS}
    COMMAND "${python}" -E -s -B "${runner}" "${folder}"
    DEPENDS
      "${CMAKE_CURRENT_SOURCE_DIR}/${arg_SCRIPT}"
      "${runner}"
      "${folder}/step.txt"
      ${arg_INPUTS}
      ${arg_GENERATED_INPUTS}
    COMMENT "Generating sources"
    VERBATIM
  )
  # Objects wait for the headers, which no rule names.
  add_custom_target("${target}.generate-${id}" DEPENDS ${arg_OUTPUTS})
  get_property(extensions TARGET "${target}" PROPERTY KERNEL_EXTENSIONS)
  foreach(library IN LISTS extensions ITEMS "${target}")
    get_property(objects TARGET "${library}" PROPERTY KERNEL_OBJECT_TARGETS)
    foreach(each IN LISTS objects ITEMS "${library}")
      add_dependencies("${each}" "${target}.generate-${id}")
    endforeach()
  endforeach()
endfunction()
