"""What each GPU runs of a wheel, from the bytes of its libraries."""

import json

import pytest

from builder import audit, cli
from builder.audit.gpus import choose, cuda_of_ptx, named
from builder.binary.device_code import groups
from builder.binary.device_image import Image
from builder.config import gpus as gpu_list
from builder.config.gpus import known, plain
from builder.errors import BuilderError
from builder.matrix import architectures
from builder.wheel.archive import Wheel
from tests.given.device_code import ARCH_SPECIFIC, bundle, fatbin, image, ptx, sass


def code(gpu, *found):
    return choose(named(gpu), [frozenset(group) for group in found])


@pytest.mark.parametrize(
    ("gpu", "group", "kind", "chosen"),
    [
        pytest.param("9.0", [sass("8.0"), sass("9.0")], "own", "9.0", id="its own machine code"),
        pytest.param("9.0", [sass("9.0"), sass("9.0a")], "own", "9.0a", id="that with all its features first"),
        pytest.param("8.9", [sass("8.0"), sass("8.6"), sass("9.0")], "older", "8.6", id="the nearest earlier one"),
        pytest.param("10.3", [sass("10.0f")], "older", "10.0f", id="its family's"),
        pytest.param("10.7", [sass("10.0f")], "older", "10.0f", id="Rubin is of the family of B200"),
        pytest.param(
            "10.7", [sass("10.0f"), sass("10.3"), sass("10.7")], "own", "10.7", id="its own before its family's"
        ),
        pytest.param("10.3", [sass("10.0f"), sass("10.3")], "own", "10.3", id="that of B300 before its family's"),
        pytest.param("10.3", [sass("10.0a"), ptx("9.0")], "ptx", "9.0", id="PTX, not another GPU's special code"),
        pytest.param("8.6", [sass("8.0"), ptx("8.6")], "older", "8.0", id="machine code before PTX"),
        pytest.param("12.0", [sass("9.0"), ptx("8.0"), ptx("9.0")], "ptx", "9.0", id="the newest PTX"),
        pytest.param("11.0", [sass("10.1")], "own", "10.1", id="Thor under its older number"),
        pytest.param("11.0", [sass("10.0"), sass("10.0f"), ptx("10.0")], "ptx", "10.0", id="Thor is no B200"),
        pytest.param("gfx942", [Image(kind="gcn", arch="gfx942:sramecc+")], "own", "gfx942:sramecc+", id="AMD"),
    ],
)
def test_a_driver_chooses(gpu, group, kind, chosen):
    found = code(gpu, group)
    assert {name: getattr(found, name) for name in ("own", "older", "ptx")} == {
        "own": (), "older": (), "ptx": (), kind: (chosen,),
    }  # fmt: skip
    assert found.runs


@pytest.mark.parametrize(
    ("gpu", "group"),
    [
        pytest.param("9.0", [sass("8.0")], id="another major version"),
        pytest.param("8.0", [sass("8.6")], id="a later GPU's"),
        pytest.param("8.9", [ptx("9.0a"), ptx("10.0")], id="PTX of later ones"),
        pytest.param("12.0", [ptx("9.0a"), ptx("10.0f")], id="PTX of one GPU or family"),
        pytest.param("8.7", [sass("8.0"), sass("8.6")], id="Jetson's is no other's"),
        pytest.param("8.9", [sass("8.7")], id="and no other's is Jetson's"),
        pytest.param("9.0", [Image(kind="lto", arch="9.0")], id="code for a linker"),
        pytest.param("gfx1100", [Image(kind="gcn", arch="gfx1101")], id="AMD's next one"),
    ],
)
def test_a_gpu_has_nothing(gpu, group):
    found = code(gpu, group)
    assert not found.runs
    assert found.text.startswith("nothing: ")


def test_a_gpu_that_lacks_the_code_of_one_source_does_not_run_the_wheel():
    found = code("8.0", [sass("8.0")], [sass("9.0")])
    assert not found.runs
    assert found.text == "machine code for 8.0; and nothing for other kernels, which fail"


def test_special_code_for_others_is_no_lack_where_the_rest_serves_a_gpu():
    found = code("8.0", [sass("8.0")], [sass("9.0a"), sass("10.0f")])
    assert found.runs
    assert found.text == "machine code for 8.0; not the kernels for 9.0a, 10.0f alone"
    assert not code("8.0", [sass("9.0a")]).runs


def test_the_driver_that_the_newest_ptx_needs_is_named():
    found = code("12.0", [ptx("9.0", "8.5")], [ptx("9.0", "9.0")])
    assert found.text == "PTX for 9.0, compiled at the first load; driver of CUDA 13.0 or newer"


def test_versions_of_ptx_are_read_from_fat_binaries():
    raw = bytearray(fatbin(image(1, 90)))
    raw[16 + 24 : 16 + 28] = bytes([2, 0, 9, 0])
    ((found,),) = groups("a.so", bytes(raw))
    assert cuda_of_ptx(found.version) == "13.2"


@pytest.mark.parametrize("text", ["H100", "h100", "9.0", " H200 "])
def test_a_gpu_is_found_by_its_product_and_its_capability(text):
    assert named(text).arch == "9.0"


def test_a_gpu_that_is_misspelled_gets_a_guess():
    with pytest.raises(BuilderError) as caught:
        named("H10O")
    assert caught.value.help == "did you mean 'H100'?"


def test_each_architecture_of_a_compiler_has_a_gpu_or_a_reason_why_not():
    facts = architectures.facts()
    toolkits = (name for each in facts["cuda"]["toolkit"] for key in ("targets", "capabilities") for name in each[key])
    compiled = {plain(name.removesuffix("+PTX")) for name in toolkits}
    compiled.update(*(facts["rocm"][key] for key in ("targets", "archs")))
    compiled.update(*(facts["xpu"][key] for key in ("targets", "devices")))
    of_gpus = {word for gpu in known() for word in (gpu.arch, gpu.also) if word is not None}
    without = [arch for each in gpu_list.table()["without-gpu"] if each["reason"] for arch in each["archs"]]
    assert compiled <= {*of_gpus, *without}
    assert len(without) == len({*without} - of_gpus)
    assert {*without} <= compiled


def test_no_gpu_is_called_as_another():
    words = [word for gpu in known() for word in gpu.words]
    assert len(words) == len(set(words))


@pytest.fixture
def library():
    return fatbin(image(2, 80), image(2, 90, flags=ARCH_SPECIFIC), image(1, 90))


def test_the_audit_shows_what_each_gpu_runs(make_wheel, compiler, library, capsys):
    wheel = make_wheel(library=compiler.library() + library, label="torch213.cxx11.cu130", backend="cuda")
    cli.run(["audit", "--gpus", str(wheel)])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "9.0 H100, H200, GH200 machine code for 9.0a" in lines
    assert any(line.startswith("7.5 T4") and "nothing: kernels fail" in line for line in lines)


def test_a_required_gpu_without_code_is_an_error(make_wheel, compiler, library, capsys):
    wheel = make_wheel(library=compiler.library() + library, label="torch213.cxx11.cu130", backend="cuda")
    assert cli.run(["audit", "--json", "--require-gpus", "H100,T4", str(wheel)]) == 5
    (report,) = json.loads(capsys.readouterr().out)["wheels"]
    assert [each["symbol"] for each in report["findings"] if each["rule"] == "gpus"] == ["T4 (7.5)"]
    hopper = next(each for each in report["gpus"] if each["arch"] == "9.0")
    assert (hopper["own"], hopper["runs"]) == (["9.0a"], True)


def test_a_gpu_has_nothing_of_code_for_those_of_another_backend():
    assert not code("gfx942", [sass("9.0"), ptx("9.0")], [sass("9.0a")]).runs
    assert not code("9.0", [Image(kind="gcn", arch="gfx942")]).runs


def test_bundles_of_hip_are_groups_of_their_own():
    one = bundle(host_x86__=b"", **{"hipv4-amdgcn-amd-amdhsa__gfx90a": b"co"})
    two = bundle(host_x86__=b"", **{"hipv4-amdgcn-amd-amdhsa__gfx942": b"co"})
    found = groups("a.so", one + two)
    assert not choose(named("gfx90a"), found).runs
    assert choose(named("gfx90a"), found).own == ("gfx90a",)


@pytest.mark.parametrize(
    ("table", "symbols"),
    [
        pytest.param({"gpus": ["H100"]}, set(), id="served"),
        pytest.param({"gpus": ["H100", "T4"]}, {"T4 (7.5)"}, id="not served"),
        pytest.param({"gpus": ["Z9"]}, {"Z9"}, id="not known"),
        pytest.param({"gpus": "T4"}, set(), id="no list"),
    ],
)
def test_what_the_kernel_requires_is_read_from_the_wheel(make_wheel, compiler, library, table, symbols):
    wheel = make_wheel(
        library=compiler.library() + library,
        label="torch213.cxx11.cu130",
        backend="cuda",
        metadata={"require": table},
    )
    found = audit.run(Wheel.read(wheel)).findings
    assert {each.symbol for each in found if each.rule == "gpus"} == symbols


def test_nothing_is_required_of_a_quick_build(make_wheel, compiler, library):
    quick = {"require": {"gpus": ["T4"]}, "build": {"not-for-release": "built for 9.0 alone"}}
    wheel = make_wheel(
        library=compiler.library() + library, label="torch213.cxx11.cu130", backend="cuda", metadata=quick
    )
    assert "gpus" not in {each.rule for each in audit.run(Wheel.read(wheel)).findings}
