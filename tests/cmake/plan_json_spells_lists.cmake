include("${KERNEL_CMAKE_DIR}/plan/json.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

kernel_plan_json(json)
assert_equal("${json}" "[]")
kernel_plan_json(json 9.0a 12.0+PTX)
assert_equal("${json}" "[\"9.0a\", \"12.0+PTX\"]")
