include("${KERNEL_CMAKE_DIR}/language.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

foreach(
  case
  IN
  ITEMS
    a.cpp=CXX
    a.cc=CXX
    a.cxx=CXX
    a.c++=CXX
    a.C=CXX
    a.c=C
    a.cu=CUDA
    a.hip=HIP
    a.m=OBJC
    a.mm=OBJCXX
    a.h=
    a.cuh=
    a.metal=
    a=
    dir.cu/a.cpp=CXX
    "a b.x.cu=CUDA"
)
  string(REGEX MATCH "^(.*)=(.*)$" ignored "${case}")
  set(expected "${CMAKE_MATCH_2}")
  kernel_language(found "${CMAKE_MATCH_1}")
  assert_equal("${found}" "${expected}")
endforeach()
