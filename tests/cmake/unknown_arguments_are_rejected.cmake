# error: unknown arguments: SOURCE;a.cpp
include("${KERNEL_CMAKE_DIR}/cpu/component.cmake")
kernel_cpu_component(target NAME one SOURCE a.cpp)
