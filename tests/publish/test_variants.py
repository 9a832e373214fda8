"""Wheel variants, judged by variantlib."""

import email
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from builder import variant_provider
from builder.config import Backend
from builder.matrix.variant import Variant, compute_name
from builder.wheel.archive import Wheel
from tests.wheels import make

variantlib = pytest.importorskip("variantlib.api")

NAMES = [
    "torch212-cxx11-cpu-x86_64-linux",
    "torch213-cxx11-cpu-x86_64-linux",
    "torch213-cxx11-cu130-x86_64-linux",
    "torch-stable-abi210-cpu-x86_64-linux",
    "torch-stable-abi214-cpu-x86_64-linux",
    "torch-cuda",
]


@pytest.fixture
def site(dist, indexed):
    for name in NAMES:
        make(dist, "some-kernel", Variant.parse(name))
    return indexed("--variants")


def test_each_wheel_is_there_as_a_variant_that_variantlib_reads(site):
    from variantlib.constants import VALIDATION_WHEEL_NAME_REGEX  # noqa: PLC0415
    from variantlib.variant_dist_info import VariantDistInfo  # noqa: PLC0415

    found = {}
    for path in sorted((site / "files" / "variants").glob("*.whl")):
        name = VALIDATION_WHEEL_NAME_REGEX.fullmatch(path.name)
        assert name["namever"] == "some_kernel-1.0.0"
        # The name without its label is that of a plain wheel, so its content is judged as one.
        plain = path.with_name(f"{name['base_wheel_name']}.whl")
        plain.write_bytes(path.read_bytes())
        wheel = Wheel.read(plain)
        info = VariantDistInfo(wheel.members["some_kernel-1.0.0.dist-info/variant.json"].read(), name["variant_label"])
        core = email.message_from_bytes(wheel.members["some_kernel-1.0.0.dist-info/METADATA"].read())
        assert (core["Name"], core["Version"]) == ("some-kernel", "1.0.0")
        assert core["Requires-Dist"] == "torch"
        with zipfile.ZipFile(plain) as archive:
            assert archive.testzip() is None
        found[name["variant_label"]] = info
        plain.unlink()
    assert sorted(found) == sorted(Variant.parse(name).label for name in NAMES)


def test_variants_json_is_what_variantlib_makes_of_the_wheels(site, tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    for path in (site / "files" / "variants").glob("*.whl"):
        (folder / path.name).write_bytes(path.read_bytes())
    code = "import sys; from variantlib.commands.main import main; main()"
    command = [sys.executable, "-c", code, "generate-index-json", "-d", folder]
    subprocess.run(command, check=True, capture_output=True)
    theirs = json.loads((folder / "some_kernel-1.0.0-variants.json").read_text())
    ours = json.loads((site / "variants" / "simple" / "some-kernel" / "some_kernel-1.0.0-variants.json").read_text())
    assert ours == theirs


@pytest.mark.parametrize(
    ("version", "best"),
    [
        pytest.param("__version__ = '2.13.0+cpu'\n", "torch213.cxx11.cpu", id="the exact one"),
        pytest.param("__version__ = '2.11.0'\ncuda = None\n", "torch.stable210.cpu", id="a stable ABI"),
        pytest.param("__version__ = '2.13.1'\ncuda: str = '13.0'\n", "torch213.cxx11.cu130", id="CUDA"),
        pytest.param("__version__ = '2.13.1'\ncuda: str = '12.6'\n", "torch.cuda", id="pure Python"),
    ],
)
def test_the_provider_leads_to_the_wheel_that_fits(site, version, best, tmp_path, monkeypatch):
    fake(tmp_path, version, monkeypatch)
    table = json.loads((site / "variants" / "simple" / "some-kernel" / "some_kernel-1.0.0-variants.json").read_text())
    configs = variant_provider.TorchKernelProvider.get_supported_configs()
    supported = [
        variantlib.VariantProperty(variant_provider.NAMESPACE, feature.name, value)
        for feature in configs
        for value in feature.values
    ]
    from variantlib.resolver.lib import sort_and_filter_supported_variants  # noqa: PLC0415
    from variantlib.variants_json import VariantsJson  # noqa: PLC0415

    found = sort_and_filter_supported_variants(
        list(VariantsJson(table).variants.values()),
        supported,
        namespace_priorities=[variant_provider.NAMESPACE],
        feature_priorities={variant_provider.NAMESPACE: [variant_provider.ABI, variant_provider.COMPUTE]},
        filter_values=True,
    )
    assert found[0].label == best


def fake(folder, version, monkeypatch):
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("raise ImportError('not to be imported')\n")
    (folder / "torch" / "version.py").write_text(version)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "torch", raising=False)


WITH_TOOLKIT = [backend for backend in Backend if backend.facts.torch_device]


@pytest.mark.parametrize("backend", WITH_TOOLKIT, ids=str)
def test_an_installer_is_told_what_the_table_of_a_backend_says(backend, tmp_path, monkeypatch):
    version = "20250300" if backend is Backend.XPU else "2025.3.1"
    fake(tmp_path, f"__version__ = '2.13.0'\n{backend.facts.torch_device} = '{version}'\n", monkeypatch)
    features = {one.name: one.values for one in variant_provider.TorchKernelProvider.get_supported_configs()}
    assert features["compute"] == [compute_name(backend, "2025.3"), backend.value]


@pytest.mark.parametrize(
    ("text", "compute"),
    [
        ("__version__ = '2.13.0'\nhip: str = '7.2.53211'\n", ["rocm72", "rocm"]),
        ("__version__ = '2.13.0'\nxpu: str = '20250302'\n", ["xpu20253", "xpu"]),
        ("__version__ = '2.13.0'\ncuda = None\nhip = None\n", ["cpu"]),
    ],
)
def test_the_compute_platform_is_read_and_not_imported(text, compute, tmp_path, monkeypatch):
    fake(tmp_path, text, monkeypatch)
    monkeypatch.setattr(sys, "platform", "linux")
    features = {one.name: one.values for one in variant_provider.TorchKernelProvider.get_supported_configs()}
    assert features["compute"] == compute
    assert features["abi"] == ["torch213", *(f"stable2{minor}" for minor in (13, 12, 11, 10, 9)), "any"]


@pytest.mark.parametrize("text", ["", "__version__ = 3\n", "def (", "__version__ = 'new'\n"], ids=repr)
def test_a_torch_that_cannot_be_read_supports_nothing(text, tmp_path, monkeypatch):
    fake(tmp_path, text, monkeypatch)
    assert variant_provider.TorchKernelProvider.get_supported_configs() == []


def test_variantlib_loads_the_provider_itself(site, monkeypatch):
    """The real entry: variantlib runs the plugin in this environment's interpreter."""
    monkeypatch.setenv("PYTHONPATH", str(Path(variant_provider.__file__).parents[1]))
    table = json.loads((site / "variants" / "simple" / "some-kernel" / "some_kernel-1.0.0-variants.json").read_text())
    found = variantlib.get_variants_by_priority(variants_json=table, venv_python_executable=sys.executable)
    labels = [one.label for one in found]
    assert "null" in labels
    assert set(labels) <= {*(Variant.parse(name).label for name in NAMES), "null"}
