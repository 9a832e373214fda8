include("${KERNEL_CMAKE_DIR}/torch/version.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/assert.inc.cmake")

function(check_version device text expected)
  set(directory "${KERNEL_TEST_DIR}/torch")
  file(WRITE "${directory}/version.py" "__all__ = ['cuda']\n${text}")
  kernel_torch_version(torch "${directory}" DEVICE "${device}")
  assert_equal("${torch_VERSION} ${torch_BUILD} ${torch_TOOLKIT}" "${expected}")
endfunction()

set(cuda "__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n")
check_version(cuda "${cuda}" "2.13.0 2.13.0+cu130 13.0")
check_version(hip "${cuda}" "2.13.0 2.13.0+cu130 ")
check_version("" "${cuda}" "2.13.0 2.13.0+cu130 ")
check_version(
  cuda
  "__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n"
  "2.13.0 2.13.0+cpu "
)
check_version(
  hip
  "__version__ = '2.12.1+rocm7.1'\ncuda: Optional[str] = None\nhip: Optional[str] = '7.1.25424'\n"
  "2.12.1 2.12.1+rocm7.1 7.1.25424"
)
check_version(
  xpu
  "__version__ = '2.12.0+xpu'\nhip: Optional[str] = None\nxpu: Optional[str] = '20250302'\n"
  "2.12.0 2.12.0+xpu 20250302"
)
check_version(cuda "__version__ = '2.15.0a0+git1234'\ncuda = '13.2'\n" "2.15.0 2.15.0a0+git1234 13.2")
