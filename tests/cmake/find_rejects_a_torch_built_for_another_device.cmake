# error: this kernel is for xpu, and the torch found, 2.13.0+cu130 in
include("${KERNEL_CMAKE_DIR}/torch/find.cmake")

set(KERNEL_TORCH_DIR "${KERNEL_TEST_DIR}/torch")
file(MAKE_DIRECTORY "${KERNEL_TORCH_DIR}/include/torch")
file(
  WRITE "${KERNEL_TORCH_DIR}/version.py"
  "__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\nxpu: Optional[str] = None\n"
)
kernel_torch_find(DEVICE xpu)
