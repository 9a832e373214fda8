"""Pairs of capabilities: what nvcc makes of them, and what it refuses."""

import subprocess

import pytest

from builder.binary import device_code, fatbin
from builder.binary.device_image import Image
from builder.config import Version
from builder.config.gpus import code_of
from builder.matrix import architectures
from tests.audit import nvidia
from tests.given import processes

pytestmark = pytest.mark.cuda
KERNEL = "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }\n"


def nvcc(folder, pairs, *more):
    """Return what nvcc says of some pairs, and the object file."""
    source, output = folder / "kernel.cu", folder / "kernel.o"
    source.write_text(KERNEL)
    halves = (pair.replace(".", "").split(":") for pair in pairs)
    flags = [f"-gencode=arch=compute_{virtual},code=sm_{real}" for virtual, real in halves]
    command = [str(nvidia.nvcc()), "-c", *flags, *more, "-o", str(output), str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False), output


def test_nvcc_marks_the_code_of_pairs_as_we_say(tmp_path):
    pairs = ("8.0:8.6", "8.0:9.0a", "10.0f:10.0", "10.0f:10.3", "10.3:12.0", "12.0f:12.1a")
    done, output = nvcc(tmp_path, pairs)
    assert done.returncode == 0, done.stderr
    found = device_code.read(output.name, output.read_bytes())
    assert found == {Image(kind="sass", arch=code_of(pair).real) for pair in pairs}


def test_a_family_and_its_first_gpu_are_that_family_byte_for_byte(tmp_path):
    contents = []
    for pair in ("10.0f:10.0", "10.0f:10.0f"):
        _, output = nvcc(tmp_path, [pair])
        contents.append(tuple(fatbin.entries(output.name, output.read_bytes())))
    assert len(contents[0]) == 1
    assert contents[0] == contents[1]
    assert code_of("10.0f:10.0") == code_of("10.0f")


@pytest.mark.parametrize("pair", ["9.0a:9.0", "10.0a:10.3a", "12.0:10.0", "10.0f:12.0", "10.0f:11.0a", "9.0:10.0f"])
def test_nvcc_makes_no_code_of_a_pair_that_is_refused(tmp_path, pair):
    done, _ = nvcc(tmp_path, [pair])
    assert done.returncode != 0
    assert code_of(pair).obstacle is not None


@pytest.mark.parametrize("pairs", [("12.0:12.0", "12.0f:12.0f"), ("10.0:10.3", "10.3f:10.3f")])
def test_nvcc_refuses_plain_code_beside_that_of_its_family(tmp_path, pairs):
    done, _ = nvcc(tmp_path, pairs)
    assert "family-specific" in done.stderr
    assert code_of(pairs[0]).place == code_of(pairs[1]).place


def test_nvcc_makes_two_pieces_of_code_for_one_gpu_without_a_word(tmp_path):
    done, output = nvcc(tmp_path, ["8.0:9.0", "9.0:9.0"])
    assert (done.returncode, done.stderr) == (0, "")
    assert [image.arch for image, _ in fatbin.entries(output.name, output.read_bytes())] == ["9.0", "9.0"]


def test_nvcc_takes_every_pair_that_our_rules_do(tmp_path):
    """By `--dryrun`: what only the assembler refuses is above."""
    version = processes.output(nvidia.nvcc(), "--version").partition("release ")[2].partition(",")[0]
    targets = next(each.targets for each in architectures.generations() if each.since <= Version(version))
    names = {code_of(f"{virtual}:{real}").name for virtual in targets for real in targets}
    taken = sorted(name for name in names if architectures.makes(name, targets))
    assert len(taken) > len(targets)
    for name in taken:
        code = code_of(name)
        done, _ = nvcc(tmp_path, [f"{code.virtual}:{code.real}"], "--dryrun")
        assert f"kind=elf,sm={code.real.replace('.', '')}," in done.stderr, name
