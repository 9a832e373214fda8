# error: 'v4.0.0' is not a whole commit: a tag can be moved
include("${KERNEL_CMAKE_DIR}/headers/clone.cmake")
kernel_headers_clone(root SOURCE "${KERNEL_TEST_DIR}" COMMIT v4.0.0)
