"""What the audit says that a GPU runs, against what NVIDIA's linker of device code takes, and its readers see."""

import re
import subprocess
from itertools import combinations, cycle

import pytest

from builder.audit.gpus import choose, named
from builder.binary import device_code
from builder.binary.device_image import Image
from tests.audit import nvidia
from tests.audit.nvidia import ARCHS, number, without_family
from tests.given.processes import output

GPUS = {
    "7.5": "75", "8.0": "80", "8.6": "86", "8.7": "87", "8.9": "89", "9.0": "90a",
    "10.0": "100a", "10.3": "103a", "11.0": "110a", "12.0": "120a", "12.1": "121a",
}  # fmt: skip
"""GPU -> its name with all that it can do, which the linker knows it by."""
FORMS = (("elf",), ("elf", "ptx"), ("ptx",))
MODES = ("none", "size", "speed", "balance", "default")
SUBSETS = list(combinations(ARCHS, 3))


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    return nvidia.readers(tmp_path_factory)


@pytest.fixture(scope="module")
def toolkit():
    return nvidia.nvcc().parent


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return nvidia.images(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def join(toolkit, images):
    def make(path, chosen, mode, *more):
        named_images = (f"--image3=kind={kind},sm={number(arch)},file={images[kind, arch]}" for kind, arch in chosen)
        output(toolkit / "fatbinary", f"--create={path}", "-64", "-c", f"--compress-mode={mode}", *more, *named_images)
        return device_code.groups(path.name, path.read_bytes())

    return make


@pytest.fixture(scope="module")
def taken(toolkit, join):
    """The names of the kernels that NVIDIA's linker takes for a GPU of what was chosen.

    A driver that has machine code which runs compiles no PTX, as NVIDIA's guides on compatibility say; the linker
    takes what is nearest, be it PTX. So it is asked again without PTX where it takes some.
    """

    def ask(path, chosen, gpu):
        found = linked(toolkit, path, gpu)
        machine = [each for each in chosen if each[0] == "elf"]
        if not machine or not any("_ptx_" in name for name in found):
            return found
        join(path.with_name("machine.fatbin"), machine, "none")
        return linked(toolkit, path.with_name("machine.fatbin"), gpu) or found

    return ask


def linked(toolkit, fatbin, gpu):
    output = fatbin.with_suffix(".cubin")
    command = [toolkit / "nvlink", f"-arch=sm_{GPUS[gpu]}", "-m64", fatbin, "-o", output]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode or "not found" in done.stderr + done.stdout:
        return set()
    return {name.decode() for name in re.findall(rb"of_(?:elf|ptx)_[0-9af]+", output.read_bytes())}


def expected(code):
    machine = {f"of_elf_{number(arch)}" for arch in (*code.own, *code.older)}
    return machine | {f"of_ptx_{number(arch)}" for arch in code.ptx}


@pytest.mark.cuda
def test_a_gpu_gets_what_nvidias_linker_takes_for_it_of_each_three_of_ten_architectures(join, taken, tmp_path):
    wrong = []
    forms, modes = cycle(FORMS), cycle(MODES)
    for index, subset in enumerate(SUBSETS):
        chosen = [(kind, arch) for arch in subset for kind in next(forms)]
        if index % 3 == 0:
            next(forms)  # or else each place of three would always have one form
        found = join(tmp_path / "a.fatbin", chosen, next(modes))
        for gpu in GPUS:
            ours = expected(choose(named(gpu), found))
            theirs = taken(tmp_path / "a.fatbin", chosen, gpu)
            if ours != theirs:
                wrong.append((gpu, chosen, ours, theirs))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.cuda
@pytest.mark.network
def test_newer_toolkits_take_the_same_of_each_image_but_for_jetson(images, join, tmp_path_factory, tmp_path):
    newest = nvidia.fetch("nvidia-cuda-nvcc==13.5.37", tmp_path_factory.mktemp("nvcc"))
    wrong = []
    for image in images:
        found = join(tmp_path / "a.fatbin", [image], "default")
        answers = ((gpu, expected(choose(named(gpu), found))) for gpu in GPUS)
        wrong += [(*image, gpu) for gpu, ours in answers if linked(newest, tmp_path / "a.fatbin", gpu) != ours]
    assert wrong == [("elf", "8.0", "8.7"), ("elf", "8.6", "8.7"), ("elf", "8.7", "8.9")]


@pytest.mark.cuda
@pytest.mark.network
@pytest.mark.parametrize("more", [(), ("--compress-all",)], ids=["some", "all"])
@pytest.mark.parametrize("mode", MODES)
def test_every_way_of_compression_is_read_as_nvidias_readers_do(readers, join, tmp_path, mode, more):
    chosen = [(kind, arch) for arch in ARCHS for kind in ("elf", "ptx")]
    (found,) = join(tmp_path / "a.fatbin", chosen, mode, *more)
    assert len(found) == 2 * len(ARCHS)
    output(readers["cuobjdump"], "--extract-elf", "all", "--extract-ptx", "all", tmp_path / "a.fatbin", cwd=tmp_path)
    machine = (output(readers["nvdisasm"], cubin) for cubin in tmp_path.glob("*.cubin"))
    texts = [("sass", text) for text in machine] + [("ptx", file.read_text()) for file in tmp_path.glob("*.ptx")]
    targets = {(kind, re.search(r"\.target\s+sm_(\d+)(\d[af]?)", text)) for kind, text in texts}
    assert without_family(found) == without_family(
        {Image(kind=kind, arch=f"{target[1]}.{target[2]}") for kind, target in targets}
    )
