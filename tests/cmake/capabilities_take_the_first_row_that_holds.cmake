include("${KERNEL_CMAKE_DIR}/cuda/capabilities.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

set(
  table
  CUDA>=13.0
  7.5
  9.0a
  lost
  7.0
  CUDA>=12.8
  7.0
  9.0a
  CUDA>=11.8
  lost
  7.0
  9.0a
)
foreach(
  case
  IN
  ITEMS "13.2.1|7.5;9.0a|7.0" "13.0|7.5;9.0a|7.0" "12.9|7.0;9.0a|" "12.4||7.0;9.0a" "11.0||"
)
  string(REGEX MATCH "^([^|]*)[|]([^|]*)[|]([^|]*)$" ignored "${case}")
  set(compiled "${CMAKE_MATCH_2}")
  set(lost "${CMAKE_MATCH_3}")
  kernel_cuda_capabilities(found TOOLKIT "${CMAKE_MATCH_1}" TABLE ${table})
  assert_equal("${found_COMPILED}" "${compiled}")
  assert_equal("${found_LOST}" "${lost}")
endforeach()
