"""Indexes of wheel variants: what uv and variantlib choose for a machine, compared with the code that its GPU runs."""

import json
import os
import re
import subprocess
import sys
import zipfile
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import pytest

from builder.audit import gpus
from builder.binary import device_code
from builder.cli import run
from builder.config import Backend
from builder.config.gpus import Gpu
from builder.matrix.variant import Variant
from builder.publish.index import explain, variants
from builder.publish.index.explain import Machine
from builder.wheel import kernel_wheel
from builder.wheel.archive import Bytes
from tests.given.device_code import ARCH_SPECIFIC, FAMILY_SPECIFIC, bundle, fatbin, image
from tests.given.files import tree
from tests.given.servers import serving_folder
from tests.given.uv_tool import needs_variants
from tests.wheels import library, make, package

variantlib = pytest.importorskip("variantlib.api")

SASS, PTX = 2, 1
LIBRARY = "_demo.abi3.so"
CODE = {
    "cu126": [(SASS, 75, 0), (SASS, 80, 0), (SASS, 86, 0), (SASS, 90, 0), (PTX, 90, 0)],
    "cu130": [(SASS, 75, 0), (SASS, 86, 0), (SASS, 90, ARCH_SPECIFIC), (SASS, 100, ARCH_SPECIFIC), (SASS, 120, 0)],
    "cu132": [(SASS, 80, 0), (SASS, 90, 0), (SASS, 100, FAMILY_SPECIFIC), (PTX, 80, 0)],
}
"""Three toolkits with quite different code: each leaves out some GPUs, or all of a family but one."""
STABLE = "torch-stable-abi210-{}-x86_64-linux"
CLASSIC = "torch213-cxx11-{}-x86_64-linux"
CAPABILITIES = (
    *("7.5", "8.0", "8.6", "8.7", "8.8", "8.9", "9.0"),
    *("10.0", "10.1", "10.3", "10.7", "11.0", "12.0", "12.1"),
)
DRIVERS = {"12.6": ["cu126"], "13.0": ["cu130", "cu126"], "13.2": ["cu132", "cu130", "cu126"]}
"""The toolkits that a driver is new enough for, the newest first."""


def wheel(dist, name, *code, kernel="demo", **more):
    """Make a wheel with some device code, that says in its module what it was built as."""
    variant = Variant.parse(name)
    images = fatbin(*(image(kind, arch, flags=flags, content=bytes([arch]) * 32) for kind, arch, flags in code))
    files = package(kernel, variant, content=f"built = {name!r}\n", more={LIBRARY: library(images)} if code else {})
    return make(dist, kernel, variant, files=files, **more)


@pytest.fixture
def made(dist, request):
    """Make the wheels of the CPU and of each toolkit, stable or classic."""
    form = getattr(request, "param", STABLE)
    wheel(dist, form.format("cpu"))
    return {compute: wheel(dist, form.format(compute), *code) for compute, code in CODE.items()}


@pytest.fixture
def served(made, indexed):  # noqa: ARG001  the wheels are there before their index
    site = indexed("--variants")
    with serving_folder(site) as address:
        yield Served(site, address)


class Served(NamedTuple):
    site: Path
    address: str


def explained(site, machine, place):
    """Return what `builder index --explain` says of an index."""
    return next(line for line in explain.explain(site, Machine.parse(machine)) if line.startswith(f"{place}/simple "))


def label(folder):
    """Return the label of the variant that was installed, as an explanation names it."""
    (path,) = folder.glob("demo-*.dist-info/variant.json")
    (found,) = json.loads(path.read_text())["variants"]
    return "for every machine" if found == variants.NULL else found


@pytest.fixture
def install(tmp_path):
    """Install a kernel by uv or pip as on a machine with some GPU and driver, and return the folder."""

    def installed(address, place, *, gpu=None, driver=None, tool="uv", preview=True, kernel="demo"):
        target = tmp_path / f"target-{len(list(tmp_path.glob('target-*')))}"
        known = {"NV_VARIANT_PROVIDER_FORCE_SM_ARCH": gpu, "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": driver}
        env = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "NV_"))}
        env |= {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_NO_CONFIG": "1", "PIP_CONFIG_FILE": os.devnull}
        env |= {name: value for name, value in known.items() if value is not None}
        command = [sys.executable, "-m", tool, *(["pip"] if tool == "uv" else []), "install", "--no-deps"]
        command += ["--target", str(target), "--index-url", f"{address}/{place}/simple/", kernel]
        if tool == "uv":
            command += ["--python", sys.executable, *(["--preview-features", "wheel-variants"] if preview else [])]
        subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        return target

    return installed


def built(folder, kernel="demo"):
    return (folder / kernel / "__init__.py").read_text().split("'")[1]


def running(code, capability):
    """Whether a GPU runs all of some device code, by the judgement of `audit --gpus`."""
    gpu = Gpu(backend=Backend.CUDA, arch=capability, names=(capability,))
    return gpus.choose(gpu, code).runs


@needs_variants
@pytest.mark.parametrize(("made", "place"), [(STABLE, "variants"), (CLASSIC, "variants/torch213")], indirect=["made"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_uv_installs_for_each_gpu_and_driver_what_the_audit_says_that_it_runs(made, place, served, install, driver):
    code = {compute: gpus.groups_of(kernel_wheel.read(path).wheel, Backend.CUDA) for compute, path in made.items()}
    wrong = {}
    for capability in CAPABILITIES:
        expected = next((each for each in DRIVERS[driver] if running(code[each], capability)), "cpu")
        folder = install(served.address, place, gpu=capability, driver=driver)
        found = built(folder).split("-")[-3]
        own = folder / "demo" / LIBRARY
        runs = own.is_file() and running(device_code.groups(LIBRARY, own.read_bytes()), capability)
        said = explained(served.site, f"{capability}:{driver}", place)
        if (found, runs, label(folder) in said) != (expected, expected != "cpu", True):
            wrong[capability] = (found, runs, expected, said)
    assert wrong == {}


def test_the_table_has_every_outcome(made):
    """The wheels of the table differ enough: each toolkit is chosen, and left out, and so is the wheel of the CPU."""
    code = {compute: gpus.groups_of(kernel_wheel.read(path).wheel, Backend.CUDA) for compute, path in made.items()}
    chosen = {
        (driver, next((each for each in among if running(code[each], capability)), "cpu"))
        for driver, among in DRIVERS.items()
        for capability in CAPABILITIES
    }
    assert {compute for _, compute in chosen} == {"cpu", *CODE}
    assert {("12.6", "cpu"), ("13.0", "cpu"), ("13.0", "cu126"), ("13.2", "cu130")} <= chosen


@needs_variants
@pytest.mark.parametrize(
    ("tool", "preview", "machine"),
    [
        pytest.param("uv", True, {}, id="uv, no GPU"),
        pytest.param("uv", False, {"gpu": "9.0", "driver": "13.0"}, id="uv without variants"),
        pytest.param("uv", True, {"gpu": "9.0", "driver": "11.8"}, id="an old driver"),
        pytest.param("pip", True, {"gpu": "9.0", "driver": "13.0"}, id="pip"),
    ],
)
def test_without_a_gpu_and_without_variants_the_wheel_for_every_machine_is_taken(
    served, install, tool, preview, machine
):
    folder = install(served.address, "variants", tool=tool, preview=preview, **machine)
    assert built(folder) == STABLE.format("cpu")


@needs_variants
def test_a_gpu_gets_the_device_code_of_its_family_alone(served, install):
    folder = install(served.address, "variants", gpu="9.0", driver="13.0")
    metadata = json.loads((folder / "demo/metadata.json").read_text())
    assert metadata["backend"]["archs"] == ["9.0a"]
    (info,) = folder.glob("demo-*.dist-info")
    assert info.name == "demo-1.0.0.dist-info"
    assert "Build:" not in (info / "WHEEL").read_text()
    assert list(json.loads((info / "variant.json").read_text())["variants"]) == ["cu130.sm90"]


@needs_variants
def test_a_kernel_without_a_wheel_of_the_cpu_has_one_that_loads_on_each_gpu(dist, indexed, install):
    wheel(dist, STABLE.format("cu130"), *CODE["cu130"])
    wheel(dist, "torch-cuda", kernel="triton-only")
    with serving_folder(indexed("--variants")) as address:
        assert built(install(address, "variants")) == STABLE.format("cu130")
        for machine in ({}, {"gpu": "12.0", "driver": "12.8"}):
            folder = install(address, "variants", kernel="triton-only", **machine)
            assert (folder / "triton_only/__init__.py").read_text() == "built = 'torch-cuda'\n"


def test_the_index_for_any_torch_has_the_oldest_stable_abi_and_the_one_of_a_torch_its_newest(dist, indexed):
    for name in ("torch-stable-abi210-cpu-x86_64-linux", "torch-stable-abi213-cpu-x86_64-linux", CLASSIC.format("cpu")):
        wheel(dist, name)
    site = indexed("--variants")

    def null(place):
        files = json.loads((site / place / "simple/demo/index.json").read_text())["files"]
        (url,) = [each["url"] for each in files if each["filename"].endswith("-null.whl")]
        with zipfile.ZipFile(site / place / "simple/demo" / url) as archive:
            return archive.read("demo/__init__.py").decode().split("'")[1]

    assert null("variants") == "torch-stable-abi210-cpu-x86_64-linux"
    assert null("variants/torch212") == "torch-stable-abi210-cpu-x86_64-linux"
    assert null("variants/torch213") == CLASSIC.format("cpu")
    assert null("variants/torch214") == "torch-stable-abi213-cpu-x86_64-linux"


def tables(site):
    return sorted(site.glob("variants/**/*-variants.json"))


@pytest.mark.usefixtures("made")
def test_variantlib_makes_the_same_table_of_the_wheels(dist, indexed, tmp_path):
    wheel(dist, STABLE.format("rocm72"), kernel="demo")
    site = indexed("--variants")
    (table,) = [path for path in tables(site) if path.parts[-4] == "variants"]
    folder = tmp_path / "wheels"
    folder.mkdir()
    for file in json.loads((table.parent / "index.json").read_text())["files"]:
        if file["filename"].endswith(".whl") and not file["filename"].endswith("linux_2_28_x86_64.whl"):
            (folder / file["filename"]).write_bytes((table.parent / file["url"]).read_bytes())
    code = "import sys; from variantlib.commands.main import main; main()"
    subprocess.run([sys.executable, "-c", code, "generate-index-json", "-d", folder], check=True, capture_output=True)
    theirs, ours = json.loads((folder / table.name).read_text()), json.loads(table.read_text())
    assert theirs.pop("$schema") != ours.pop("$schema")  # it writes the name of an older draft
    assert ours == theirs


@pytest.mark.usefixtures("made")
def test_labels_are_as_short_as_the_pep_wants_and_every_file_is_listed_with_its_hash(dist, indexed):
    wheel(dist, STABLE.format("cu130").replace("x86_64", "aarch64"), *CODE["cu132"])
    site = indexed("--variants")
    for table in tables(site):
        labels = json.loads(table.read_text())["variants"]
        assert all(len(label) <= 16 for label in labels), labels
        files = {each["filename"]: each for each in json.loads((table.parent / "index.json").read_text())["files"]}
        assert files[table.name]["size"] == table.stat().st_size
        page = (table.parent / "index.html").read_text()
        assert f'href="{table.name}#sha256={files[table.name]["hashes"]["sha256"]}"' in page
        assert {name.removesuffix(".whl").split("-")[-1] for name in files} >= labels.keys()
    # The wheels of the two systems have other code, so that one label cannot stand for both.
    labels = json.loads((site / "variants/simple/demo/demo-1.0.0-variants.json").read_text())["variants"]
    assert {"cu130.sm80", "cu130.sm80.2"} <= labels.keys()


@pytest.mark.usefixtures("made")
def test_variantlib_chooses_as_uv_does(indexed):
    """The provider's values of a GPU are written down here once more: an independent reading of what it offers."""
    from variantlib.resolver.lib import sort_and_filter_supported_variants  # noqa: PLC0415
    from variantlib.variants_json import VariantsJson  # noqa: PLC0415

    (table,) = [path for path in tables(indexed("--variants")) if path.parts[-4] == "variants"]
    variants_json = VariantsJson(json.loads(table.read_text()))
    offered = {
        "cuda_version_lower_bound": ["13.2", "13.1", "13.0", "13", *(f"12.{minor}" for minor in range(20, -1, -1))],
        "sm_arch": ["103_real", "102_real", "101_real", "100_real", "100_virtual"],
    }
    found = sort_and_filter_supported_variants(
        list(variants_json.variants.values()),
        [variantlib.VariantProperty("nvidia", name, value) for name, values in offered.items() for value in values],
        namespace_priorities=["nvidia"],
        feature_priorities={"nvidia": list(offered)},
        filter_values=True,
    )
    labels = [label for label, _ in groupby(each.label for each in found)]
    assert labels[0] == "cu132.sm100"
    assert labels[-1] == variants.NULL


@needs_variants
def test_a_gpu_of_amd_has_a_variant_that_uv_passes_over(dist, indexed, install):
    """uv has no provider of AMD, and the table with one is no obstacle to what it knows."""
    code = library(bundle(host_x86__=b"", **{"hipv4-amdgcn-amd-amdhsa__gfx942": b"co"}))
    rocm = Variant.parse(STABLE.format("rocm72"))
    make(dist, "demo", rocm, files=package("demo", rocm, more={LIBRARY: code}))
    wheel(dist, STABLE.format("cpu"))
    wheel(dist, STABLE.format("cu130"), *CODE["cu130"])
    site = indexed("--variants")
    table = json.loads((site / "variants/simple/demo/demo-1.0.0-variants.json").read_text())
    assert table["variants"]["rocm72"] == {"amd": {"gfx_arch": ["gfx942"]}}
    assert ": rocm72: demo-1.0.0-" in explained(site, "MI300X", "variants")
    assert "the wheel for every machine" in explained(site, "gfx90a", "variants")
    with serving_folder(site) as address:
        assert built(install(address, "variants")) == STABLE.format("cpu")
        assert built(install(address, "variants", gpu="9.0", driver="13.0")) == STABLE.format("cu130")


@pytest.mark.usefixtures("made")
def test_the_command_says_what_a_machine_gets_and_writes_nothing(dist, indexed, capsys):
    wheel(dist, STABLE.format("rocm72"))
    site = indexed("--variants")
    before = tree(site)
    said = {}
    for machine in ("H100:13.0", "sm_90:12.6", "10.7:13.0", "cpu", "MI300X"):
        capsys.readouterr()
        assert run(["index", str(site), "--explain", machine]) == 0
        (said[machine],) = re.findall("^variants/simple .*", capsys.readouterr().out, re.MULTILINE)
    assert said["H100:13.0"].startswith("variants/simple demo-1.0.0: cu130.sm90: demo-1.0.0-cp39-abi3-")
    assert ": cu126.sm90: " in said["sm_90:12.6"]
    assert ": cu130.sm100.2: " in said["10.7:13.0"]  # the code of CUDA 13.0 is for 10.0 alone: that of 12.6
    assert ": the wheel for every machine: demo-1.0.0-" in said["cpu"]
    assert ": the wheel for every machine: " in said["MI300X"]  # the wheel for ROCm has no code of its own
    assert tree(site) == before


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ("H1000", "is not a GPU that is known"),
        ("H100:new", "'new' is not a release of CUDA"),
        ("cpu:13.0", "is not a GPU"),
    ],
)
def test_a_machine_that_is_none_is_refused_in_words(site_without, machine, message, capsys):
    assert run(["index", str(site_without), "--explain", machine]) == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def site_without(dist, indexed):
    wheel(dist, STABLE.format("cpu"))
    return indexed()


def test_a_site_without_variants_explains_nothing(site_without, capsys):
    assert run(["index", str(site_without), "--explain", "cpu"]) == 3
    assert "has no index of variants" in capsys.readouterr().err


def test_a_wheel_whose_code_cannot_be_read_is_refused_in_words(dist, tmp_path, capsys):
    made = package("demo", Variant.parse(STABLE.format("cu130")), more={LIBRARY: Bytes(b"no library")})
    make(dist, "demo", Variant.parse(STABLE.format("cu130")), files=made)
    assert run(["index", str(dist), "--output", str(tmp_path / "site"), "--variants"]) == 2
    assert "cannot be a variant" in capsys.readouterr().err


@pytest.mark.usefixtures("made")
def test_a_variant_that_the_site_has_is_not_made_again_and_is_listed_as_before(dist, indexed, monkeypatch):
    before = tree(indexed("--variants"))
    with monkeypatch.context() as patch:
        patch.setattr(variants, "pack", Mock(side_effect=AssertionError("it was made again")))
        assert tree(indexed("--variants")) == before
    wheel(dist, STABLE.format("cu132"), (SASS, 90, 0), kernel="other")
    again = tree(indexed("--variants"))
    assert tree(indexed("--variants", output="anew")) == again
    assert {path for path in before if path.endswith(".whl")} < again.keys()


@pytest.mark.usefixtures("made")
def test_a_variant_that_was_changed_in_the_site_is_found(indexed, capsys, dist):
    path = next(path for path in indexed("--variants").glob("files/variants/*/*.whl"))
    path.write_bytes(b"changed")
    assert run(["index", str(dist), "--output", str(path.parents[3]), "--variants"]) == 3
    assert f"already has other files named {path.relative_to(path.parents[3]).as_posix()}" in capsys.readouterr().err


@pytest.mark.parametrize(("more", "code"), [(2000, 0), (0, 2)], ids=["enough", "too little"])
def test_a_variant_may_have_the_bytes_that_its_kernel_allows_and_no_more(dist, tmp_path, capsys, more, code):
    variant = Variant.parse(STABLE.format("cpu"))
    files = package("demo", variant)
    size = make(dist, "demo", variant, files=files).stat().st_size + more
    table = json.loads(files["metadata.json"].content) | {"require": {"max-size": f"{size / 1000:.3f} kB"}}
    path = make(dist, "demo", variant, files=files | {"metadata.json": Bytes(json.dumps(table).encode())})
    assert run(["index", str(dist), "--output", str(tmp_path / "site"), "--variants"]) == code
    said = capsys.readouterr().err
    assert (f"'{path}' cannot be a variant: 'demo-1.0.0-" in said, "max-size" in said) == (code != 0, code != 0)
