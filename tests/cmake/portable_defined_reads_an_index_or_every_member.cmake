include("${KERNEL_CMAKE_DIR}/portable/defined.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

find_program(CMAKE_AR ar REQUIRED)
find_program(CMAKE_NM nm REQUIRED)
find_program(readelf readelf REQUIRED)
find_program(compiler cc REQUIRED)
find_program(false false REQUIRED)
file(
  WRITE "${KERNEL_TEST_DIR}/a.c"
  "int _a; static int _b; int c; int _d(void) { extern int _e; return _b + _e; }\n"
)
execute_process(
  COMMAND "${compiler}" -c a.c
  WORKING_DIRECTORY "${KERNEL_TEST_DIR}"
  COMMAND_ERROR_IS_FATAL ANY
)
execute_process(
  COMMAND "${CMAKE_AR}" qcs a.a a.o
  WORKING_DIRECTORY "${KERNEL_TEST_DIR}"
  COMMAND_ERROR_IS_FATAL ANY
)
foreach(CMAKE_READELF IN ITEMS "${readelf}" "${false}")
  kernel_portable_defined(defined "${KERNEL_TEST_DIR}/a.a")
  list(SORT defined)
  assert_equal("${defined}" "_a;_d")
endforeach()
