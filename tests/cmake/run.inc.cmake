# Run a test with the policies of a rendered project: cmake -DKERNEL_TEST=… -P run.inc.cmake
cmake_minimum_required(VERSION 3.26...4.3)
include("${KERNEL_TEST}")
