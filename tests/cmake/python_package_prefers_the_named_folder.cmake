include("${KERNEL_CMAKE_DIR}/python_package.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

file(
  MAKE_DIRECTORY
    "${KERNEL_TEST_DIR}/named/include"
    "${KERNEL_TEST_DIR}/prefix/json/include"
    "${KERNEL_TEST_DIR}/pkg/share/cmake"
)
file(MAKE_DIRECTORY "${KERNEL_TEST_DIR}/pkg/include")
set(CMAKE_PREFIX_PATH "${KERNEL_TEST_DIR}/prefix")
kernel_python_package(found json CONTAINS include)
assert_equal("${found}" "${KERNEL_TEST_DIR}/prefix/json")
set(CMAKE_PREFIX_PATH "${KERNEL_TEST_DIR}/pkg/share/cmake")
kernel_python_package(found json CONTAINS include)
assert_equal("${found}" "${KERNEL_TEST_DIR}/pkg")
set(KERNEL_JSON_DIR "${KERNEL_TEST_DIR}/named")
kernel_python_package(found json CONTAINS include)
assert_equal("${found}" "${KERNEL_TEST_DIR}/named")
