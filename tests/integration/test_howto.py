"""The commands of the how-to pages run, and do what the pages say."""

import pytest

from tests.integration import blocks

pytestmark = [pytest.mark.torch, pytest.mark.cmake, pytest.mark.network, pytest.mark.slow]

SAYS = {
    "howto/stable-abi.md": ["torch-stable-abi210-cpu-x86_64-linux", "stable210.cpu-py3-none", ": ok ("],
    "howto/backends.md": ["enable_language(HIP)", "torch.cpu-py3-none-any.whl", "tvmffi01.cpu"],
    "howto/plain-library.md": ["ctypes.cpu-py3-none"],
    "howto/many-kernels.md": ["2 kernels: no problems", "shift:torch-cpu", "scale:torch-cpu: ", '"include":['],
    "howto/air-gapped.md": ["tvmffi01.cpu", "exit code 3"],
    "howto/from-kernel-builder.md": ["edition = 5", "torch213-cxx11-cpu-x86_64-linux"],
    "howto/from-setup-py.md": ['cuda-capabilities = ["8.0", "9.0a", "12.0"]', "2 sources equal, 0 different"],
    "howto/from-cpp-extension.md": ["kernel_cuda_component"],
    "howto/compare-builds.md": ["none breaking", "calls of the schema before do not fit", "exit code 1"],
}


def test_every_page_is_run():
    assert {f"howto/{path.name}" for path in (blocks.ROOT / "docs/howto").glob("*.md")} == SAYS.keys()


@pytest.mark.parametrize("page", SAYS)
def test_a_page_runs(tmp_path, page):
    done = blocks.run(page, tmp_path)
    for text in SAYS[page]:
        assert text in done.stdout
