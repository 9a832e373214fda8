include("${KERNEL_CMAKE_DIR}/when/version.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

foreach(
  clauses
  IN
  ITEMS ">=12.8" "<=12.8" "==12.8" "!=12.9" ">12.7" "<12.10" ">=12.8;<13.0"
)
  kernel_when_version(holds 12.8.93 ${clauses})
  assert_equal("${clauses} ${holds}" "${clauses} TRUE")
endforeach()
foreach(
  clauses
  IN
  ITEMS ">=12.9" "<=12.7" "==12.9" "!=12.8" ">12.8" "<12.8" ">=12.8;<12.1"
)
  kernel_when_version(holds 12.8.93 ${clauses})
  assert_equal("${clauses} ${holds}" "${clauses} FALSE")
endforeach()
