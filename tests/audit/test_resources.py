"""The resources of the functions of a wheel, and whether the tools of the vendors read the same."""

import functools
import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from builder import cli, codec
from builder.audit import occupancy, resources
from builder.binary import cubin_functions, device_code
from builder.binary.device_image import UnpackingBudget
from builder.binary.functions import Function
from builder.wheel.archive import Wheel
from tests import needs
from tests.audit import nvidia
from tests.given.device_code import LOAD, STORE, compiled, fatbin, image
from tests.given.processes import output

SPILLING = compiled(registers=32, stack=8, moves=[(STORE, 4), (LOAD, 8)], threads=256)
DATA = Path(__file__).parents[1] / "data/resources"
CODE = fatbin(image(2, 80, content=compiled(registers=40)), image(2, 90, content=SPILLING))


@pytest.fixture
def wheel(make_wheel, compiler):
    cuda = functools.partial(make_wheel, label="torch213.cxx11.cu130", backend="cuda")
    return lambda code: cuda(library=compiler.library() + code)


def test_functions_are_listed_by_architecture_with_what_gpus_keep_running(wheel):
    found = resources.of(Wheel.read(wheel(CODE * 2)))
    assert [(each.arch, each.source_name, each.function.registers) for each in found.functions] == [
        ("8.0", "tile(float*)", 40),
        ("9.0", "tile(float*)", 32),
    ]
    assert found.functions[0].occupancy == {"8.0": 75, "8.6": 100, "8.9": 100}
    assert [each.spills for each in found.functions] == ["", "4 bytes stored, 8 loaded"]
    assert codec.decode(resources.WheelResources, codec.encode(found)) == found


def test_the_command_shows_them_in_words_and_in_json(wheel, capsys):
    path = wheel(CODE)
    cli.run(["audit", "--resources", str(path)])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "32 64 8 256 100 % 4 bytes stored, 8 loaded tile(float*)" in lines
    cli.run(["audit", "--resources", "--json", str(path)])
    (report,) = json.loads(capsys.readouterr().out)["wheels"]
    assert report["resources"]["functions"][1] == {
        "library": "demo/_demo_cpu_0000001.abi3.so",
        "arch": "9.0",
        "source-name": "tile(float*)",
        "mangled": "_Z4tilePf",
        "occupancy": {"9.0": 100},
        "registers": 32,
        "stack": 8,
        "shared": 64,
        "constant": 16,
        "size": 48,
        "threads": 256,
        "wave": 32,
        "spill-stores": 4,
        "spill-loads": 8,
    }


def test_a_library_that_cannot_be_read_says_why(wheel, capsys):
    cli.run(["audit", "--resources", str(wheel(fatbin(image(2, 80))))])
    assert (
        "demo/_demo_cpu_0000001.abi3.so: 'demo/_demo_cpu_0000001.abi3.so' has a damaged cubin"
        in capsys.readouterr().out
    )


def test_a_spill_of_an_amd_gpu_is_counted_in_registers():
    amd = Function(name="k", registers=128, stack=0, shared=0, constant=0, size=0, spilled=1, spilled_scalars=2)
    each = resources.Compiled(library="a.so", arch="gfx90a", source_name="k", function=amd)
    assert each.spills == "1 vector register and 2 scalar registers"


@pytest.fixture(scope="module")
def compile_cuda(tmp_path_factory):
    """Return what compiles the kernels for an architecture: the cubin, and the words of ptxas about it."""
    folder = tmp_path_factory.mktemp("cubins")
    shutil.copy(DATA / "kernels.cu", folder / "k.cu")

    def run(arch, *flags):
        command = (nvidia.nvcc(), "-cubin", f"-arch=sm_{arch}", "-Xptxas", "-v", *flags, "k.cu", "-o", f"{arch}.cubin")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        return folder / f"{arch}.cubin", done.stderr

    return run


USAGE = re.compile(r"Function (\S+):\n +(.*)")
SPILLS = re.compile(r"entry function '(\S+)'.*\n.*\n.*, (\d+) bytes spill stores, (\d+) bytes spill loads")
KERNELS = 11
FLAGS = [pytest.param((), id="as it is"), pytest.param(("-maxrregcount", "32"), id="few registers"),
         pytest.param(("-G",), id="debug")]  # fmt: skip


@pytest.mark.cuda
@pytest.mark.network
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("arch", ["75", "80", "86", "89", "90a", "100f", "103", "110", "120"])
def test_all_figures_are_those_of_cuobjdump_and_of_ptxas(compile_cuda, tmp_path_factory, arch, flags):
    cubin, said = compile_cuda(arch, *flags)
    content = cubin.read_bytes()
    found = {each.name: each for each in cubin_functions.functions(content, UnpackingBudget.of("k", content), at=0)}
    tool = nvidia.tool("cuobjdump", "nvidia-cuda-cuobjdump", tmp_path_factory.mktemp("cuobjdump"))
    usage = {
        name: dict(re.findall(r"(\S+):(\S+)", text)) for name, text in USAGE.findall(output(tool, "-res-usage", cubin))
    }
    assert found.keys() == usage.keys()
    kernels = {name: (int(stores), int(loads)) for name, stores, loads in SPILLS.findall(said)}
    assert len(kernels) == KERNELS
    for name, theirs in usage.items():
        each = found[name]
        ours = {"REG": each.registers, "STACK": each.stack, "SHARED": each.shared}
        numbers = {key: int(value) for key, value in theirs.items() if value.isdigit()}
        if name not in kernels and not numbers["REG"]:
            del numbers["REG"]  # of a function for 9.0 and later that is no kernel it says nothing
        assert {key: ours[key] for key in ours.keys() & numbers} == {key: numbers[key] for key in ours.keys() & numbers}
        assert each.constant == sum(value for key, value in numbers.items() if key.startswith("CONSTANT"))
    assert {name: (found[name].spill_stores, found[name].spill_loads) for name in kernels} == kernels
    if flags[:1] == ("-maxrregcount",):
        assert sum(stores > 0 for stores, _ in kernels.values()) > 3
        assert "-maxrregcount 32" in found["plain"].options


@pytest.mark.cuda
def test_the_blocks_that_run_at_once_are_those_of_the_header_of_nvidia(tmp_path):
    include = nvidia.nvcc().parent.parent / "include"
    output("g++", f"-I{include}", DATA / "occupancy.cpp", "-o", tmp_path / "a")
    draw, rows, found = random.Random(1), [], []
    for arch, limits in occupancy.limits().items():
        for _ in range(0 if arch.startswith("gfx") else 2000):
            registers, threads = (
                draw.randint(1, 255),
                draw.choice((32, 64, 96, 128, 192, 256, 384, 512, 768, 1000, 1024)),
            )
            own = draw.choice((0, draw.randint(1, 49152), draw.randint(1, limits.shared - limits.reserved)))
            most = limits.waves * limits.parts * 32
            rows.append((*arch.split("."), most, limits.shared, limits.reserved, registers, own, threads))
            counted = own + limits.reserved * limits.reserved_is_counted
            taken = {"registers": registers, "shared": counted, "threads": threads, "wave": 32}
            found.append(occupancy.blocks(limits, **taken))
    text = "\n".join(" ".join(map(str, row)) for row in rows)
    done = subprocess.run((tmp_path / "a",), input=text, capture_output=True, text=True, check=True)
    assert list(map(int, done.stdout.split())) == found
    assert len(set(found)) > 20


KEYS = {
    "vgpr_count": "registers",
    "sgpr_count": "scalars",
    "vgpr_spill_count": "spilled",
    "sgpr_spill_count": "spilled_scalars",
    "group_segment_fixed_size": "shared",
    "private_segment_fixed_size": "stack",
    "kernarg_segment_size": "constant",
    "max_flat_workgroup_size": "threads",
    "wavefront_size": "wave",
}


@needs.only_with("clang", "ld.lld", "llvm-readobj")
@pytest.mark.parametrize("arch", ["gfx906", "gfx90a", "gfx1030", "gfx1100"])
def test_the_figures_for_amd_are_those_of_llvm(tmp_path, arch):
    flags = ("-x", "hip", f"--offload-arch={arch}", "-nogpulib", "-nogpuinc", "--cuda-device-only", "-O3")
    remarks = "-Rpass-analysis=kernel-resource-usage"
    done = subprocess.run(
        (needs.find("clang"), *flags, remarks, DATA / "kernels.hip", "-o", "k.hipfb"),
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"this clang compiles nothing for {arch} [clang]: {done.stderr[:300]}")
    bundled = (tmp_path / "k.hipfb").read_bytes()
    found = {each.name: each for _, each in device_code.functions("k", bundled)}
    (tmp_path / "k.co").write_bytes(bundled[bundled.rindex(b"\x7fELF") :])
    notes = output(needs.find("llvm-readobj"), "--notes", tmp_path / "k.co")
    listed = [dict(re.findall(r"\.(\w+): +(\S+)", kernel)) for kernel in re.split(r"\n  - ", notes)[1:]]
    theirs = {each["symbol"].removesuffix(".kd"): each for each in listed if "symbol" in each}
    assert len(theirs) == 5
    assert {name: {key: int(each[key]) for key in KEYS} for name, each in theirs.items()} == {
        name: {key: getattr(each, field) for key, field in KEYS.items()} for name, each in found.items()
    }
    assert any(each.spilled for each in found.values())
    assert all(each.size > 0 for each in found.values())
    waves = dict(re.findall(r"Function Name: (\S+) .*?Occupancy \[waves/SIMD\]: (\d+)", done.stderr, re.DOTALL))
    limits = occupancy.limits()[arch]
    if arch == "gfx1100":
        return  # of whose registers a clang before 16 knows two thirds
    for name, each in found.items():
        if not each.shared:
            alone = {"registers": each.registers, "shared": 0, "threads": each.wave, "wave": each.wave}
            assert (name, occupancy.blocks(limits, **alone)) == (name, limits.parts * int(waves[name]))
