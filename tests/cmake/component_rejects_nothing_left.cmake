# error: kernel 'one' asks for 8.0 9.0, and CUDA 13.0 compiles none of it
include("${KERNEL_CMAKE_DIR}/plan/component.cmake")
kernel_plan_component(target NAME one TOOLKIT "CUDA 13.0" COMPILED LOST 8.0 9.0)
