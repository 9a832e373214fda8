"""A CUDA toolkit of wheels, completed."""

import pytest

from builder.toolchain import cuda_wheels


@pytest.fixture
def site_packages(tmp_path):
    root = tmp_path / "nvidia" / "cu13"
    for name in ("bin/nvcc", "include/cuda.h", "lib/libcudart.so.13", "lib/libnvvm.so.4", "lib/libcudart_static.a"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return tmp_path


def links(root):
    return {str(path.relative_to(root)): str(path.readlink()) for path in root.rglob("*") if path.is_symlink()}


def test_a_toolkit_gets_the_links_that_cmake_looks_for(site_packages):
    root = cuda_wheels.cuda_root(site_packages)
    cuda_wheels.complete(root)
    assert links(root) == {
        "lib64": "lib",
        "lib/libcudart.so": "libcudart.so.13",
        "lib/libnvvm.so": "libnvvm.so.4",
    }


def test_completing_twice_changes_nothing(site_packages):
    root = cuda_wheels.cuda_root(site_packages)
    cuda_wheels.complete(root)
    first = links(root)
    cuda_wheels.complete(root)
    assert links(root) == first


def test_what_a_wheel_brought_is_kept(site_packages):
    root = cuda_wheels.cuda_root(site_packages)
    (root / "lib/libcudart.so").write_text("real")
    cuda_wheels.complete(root)
    assert (root / "lib/libcudart.so").read_text() == "real"


def test_an_environment_without_nvcc_has_no_toolkit(site_packages):
    (site_packages / "nvidia/cu13/bin/nvcc").unlink()
    assert cuda_wheels.cuda_root(site_packages) is None
