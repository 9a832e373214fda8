"""Values that are valid by construction."""

import pytest

from builder.config import KernelName, Version
from builder.config.giturl import GitUrl
from builder.config.values import CudaCapability, ProjectPath, RocmArch


@pytest.mark.parametrize(
    ("older", "newer"), [("2.9", "2.10"), ("2.10", "3.0"), ("0.0", "0.1"), ("9.99", "10.0"), ("02.1", "2.2")]
)
def test_versions_compare_as_numbers(older, newer):
    assert Version(older) < Version(newer)
    assert Version(older) != Version(newer)
    assert not Version(newer) < Version(newer)
    assert len({Version(older), Version(str(Version(older)))}) == 1


def test_a_version_is_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        Version("2.9").major = 3


@pytest.mark.parametrize("text", ["", "a", "Relu", "a_b", "a-", "-a", "1a", "é1", "ab\n", "a b", "a" * 200 + "_"])
def test_a_kernel_name_refuses(text):
    with pytest.raises(ValueError, match="is not a kernel name: use lower-case letters"):
        KernelName(text)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Flash Attention_2", "write 'flash-attention-2'"),
        ("3D_ExLlama_v3_", "write 'd-exllama-v3'"),
        ("-relu-", "write 'relu'"),
        ("R" * 300, f"write '{'r' * 200}'"),
        ("é", None),
    ],
)
def test_a_name_that_is_no_kernel_name_gets_the_nearest_that_is(text, remedy):
    assert KernelName.remedy(text) == remedy


def test_the_module_of_a_kernel_has_underscores():
    assert KernelName("flash-attention-3").module == "flash_attention_3"


@pytest.mark.parametrize(
    "text", ["", "/a", "..", "a/../..", "a/../../b", "a//../..", "a/./../..", "a\0", "a\nb", "a\x1b"]
)
def test_a_path_refuses(text):
    with pytest.raises(ValueError, match="is not a path inside the project"):
        ProjectPath(text)


@pytest.mark.parametrize("text", ["a", "./a", "a/../b", "a//b", "größe/漢字.cpp", "a b", "-a", "a/.."])
def test_a_path_is_accepted(text):
    assert ProjectPath(text) == text


@pytest.mark.parametrize("text", ["9.0", "9.0a", "10.0f", "12.0+PTX", "9.0a+PTX"])
def test_a_capability_is_accepted(text):
    assert CudaCapability(text) == text


@pytest.mark.parametrize("text", ["90", "sm_90", "9.0b", "9.0+ptx", "9", "", "9.00", "x.0", "٩.0"])
def test_a_capability_refuses(text):
    with pytest.raises(ValueError, match="is not a CUDA capability"):
        CudaCapability(text)


@pytest.mark.parametrize("text", ["90a", "sm_90", "gfx", "GFX90A", "", "gfx90g"])
def test_an_arch_refuses(text):
    with pytest.raises(ValueError, match="is not a ROCm architecture"):
        RocmArch(text)


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("github.com:user/repo", "write 'git@github.com:user/repo'"),
        ("github.com/user/repo", "write 'https://github.com/user/repo'"),
        ("ftp://a/b", None),
    ],
)
def test_a_git_url_is_refused_with_what_was_meant(text, help_):
    with pytest.raises(ValueError, match="is not a Git URL") as raised:
        GitUrl(text)
    assert raised.value.help == help_
