include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

file(WRITE "${KERNEL_TEST_DIR}/x.metallib" "MTLB")
execute_process(
  COMMAND
    "${CMAKE_COMMAND}" "-DLIBRARY=${KERNEL_TEST_DIR}/x.metallib" "-DHEADER=${KERNEL_TEST_DIR}/x.h"
    -DNAMESPACE=ops_metal -P "${KERNEL_CMAKE_DIR}/metal/embed.cmake"
  COMMAND_ERROR_IS_FATAL ANY
)
file(READ "${KERNEL_TEST_DIR}/x.h" header)
foreach(
  part
  IN
  ITEMS
    "namespace ops_metal {"
    "0x4d,0x54,0x4c,0x42,"
    "createLibrary(id<MTLDevice> device, NSError** error)"
)
  string(FIND "${header}" "${part}" index)
  if(index EQUAL -1)
    message(FATAL_ERROR "no '${part}' in: ${header}")
  endif()
endforeach()
