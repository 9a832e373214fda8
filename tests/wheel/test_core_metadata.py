from dataclasses import replace

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement

from builder import toml
from builder.config import Framework, Version, dependencies
from builder.config.text import Source
from builder.kernel import Kernel
from builder.render import environment, template_values
from builder.wheel import core_metadata, fields
from tests.wheel.cells import cells

FACTS = template_values.SourceFacts(libraries={None: template_values.LibraryScan()})


def test_each_backend_of_a_mixed_kernel_asks_for_the_torch_of_its_own_abi():
    config, found = cells(framework='[torch]\nsrc = ["b.cpp"]\n[torch.stable-abi]\ncuda = "2.10"')
    asked = {
        name: core_metadata.requirements(config, cell, "2.13.0+cpu")[0]
        for name, cell in found.items()
        if "x86_64" in name
    }
    assert asked["torch213-cxx11-cpu-x86_64-linux"] == "torch==2.13.*"
    assert asked["torch-stable-abi210-cu130-x86_64-linux"] == "torch>=2.10"
    assert not [name for name in asked if "stable" in name and "-cpu-" in name]
    assert not [name for name in asked if "cxx11" in name and "-cu" in name]


@pytest.mark.parametrize(
    ("variant", "asked"),
    [
        ("torch213-cxx11-cu130-x86_64-linux", ("nvidia-nvjpeg>=13,<14",)),
        ("torch213-cxx11-cu126-x86_64-linux", ("nvidia-nvjpeg-cu12",)),
        ("torch213-cxx11-cpu-x86_64-linux", ()),
    ],
)
def test_a_wheel_asks_for_the_packages_of_libraries_that_torch_does_not_install(variant, asked):
    config, found = cells(framework='[torch]\nsrc = ["b.cpp"]\nlibraries = ["nvjpeg", "cublas", "dl"]')
    assert core_metadata.requirements(config, found[variant], "2.13.0")[1:] == asked


def test_a_component_that_a_cell_leaves_out_brings_no_requirement():
    part = '[kernel.three]\nbackend = "cuda"\ndepends = []\nsrc = ["a.cu"]\n'
    part += 'libraries = ["nvjpeg"]\nwhen = { cuda = ">=13.0" }'
    config, found = cells(framework=f'[torch]\nsrc = ["b.cpp"]\n{part}')
    asked = {name: core_metadata.requirements(config, cell, "2.13.0")[1:] for name, cell in found.items()}
    assert asked["torch213-cxx11-cu130-x86_64-linux"] == ("nvidia-nvjpeg>=13,<14",)
    assert asked["torch213-cxx11-cu126-x86_64-linux"] == ()


@pytest.mark.parametrize("built_with", ["0.1.15.post2", "0.1.13", "0.1.10"])
def test_a_tvm_ffi_that_confuses_builds_of_torch_is_never_accepted(built_with):
    config, found = cells(framework='[tvm-ffi]\nsrc = ["b.cpp"]')
    (text,) = core_metadata.requirements(config, found["tvm-ffi01-cpu-x86_64-linux"], built_with)
    asked = Requirement(text)
    assert "0.1.12" not in asked.specifier
    assert "0.2.0" not in asked.specifier
    assert asked.specifier.contains("0.1.15.post2")
    assert asked.specifier.contains("0.1.13") == (built_with != "0.1.15.post2")


def test_a_torch_kernel_that_uses_tvm_ffi_asks_for_a_safe_one_too():
    config, found = cells(framework='[torch]\nsrc = ["b.cpp"]', general='python-depends = ["tvm-ffi"]')
    cell = found["torch213-cxx11-cpu-x86_64-linux"]
    assert "apache-tvm-ffi>=0.1.13" in core_metadata.requirements(config, cell, "2.13.0+cpu")


@pytest.mark.parametrize("built_with", ["2.13.0+cu130", "2.13.1", "2.9.0rc1", "0.1.15.post2", "0.1.13", "0.1.10"])
def test_a_project_that_is_built_without_builder_asks_for_the_same_framework(tmp_path, monkeypatch, built_with):
    tvm_ffi = built_with.startswith("0.")
    config, found = cells(framework=f'[{"tvm-ffi" if tvm_ffi else "torch"}]\nsrc = ["b.cpp"]')
    torch = Version(".".join(built_with.split(".")[:2]))
    cell = next(cell for cell in found.values() if tvm_ffi or cell.torch == torch or torch == Version("2.9"))
    cell = replace(cell, torch=torch)
    kernel = Kernel(root=tmp_path, source=Source(name="build.toml", text=""), config=config, schema=5)
    given = template_values.of(kernel, cell.backend, unique_id="abc", noarch=False, found=FACTS)
    settings = toml.loads(environment().get_template("_shared/pyproject.toml.j2").render(given))
    (settings,) = settings["tool"]["dynamic-metadata"]
    own = {}
    exec(environment().get_template("_shared/requirement.py.j2").render(given), own)
    monkeypatch.setitem(own, "version", {settings["package"]: built_with}.__getitem__)
    (asked,) = own["dynamic_metadata"](settings, {})["dependencies"]
    assert asked == core_metadata.requirements(config, cell, built_with)[0]


def test_a_backend_of_python_alone_asks_for_torch_whatever_the_framework_of_the_others(tmp_path):
    config, found = cells(framework='[tvm-ffi]\nsrc = ["b.cpp"]')
    config = replace(config, kernel={})
    cell = replace(found["tvm-ffi01-cpu-x86_64-linux"], framework=Framework.TORCH_NOARCH, tvm_ffi=None)
    kernel = Kernel(root=tmp_path, source=Source(name="build.toml", text=""), config=config, schema=5)
    given = template_values.of(kernel, cell.backend, unique_id="abc", noarch=True, found=FACTS)
    assert given["dependencies"] == list(core_metadata.requirements(config, cell, "")) == ["torch"]


def test_a_dependency_without_a_floor_is_named_alone():
    assert dependencies.requirement("einops") == "einops"


def test_the_fields_of_a_wheel_are_those_of_its_config_and_its_cell():
    config, found = cells(framework='[torch]\nsrc = ["b.cpp"]')
    cell = found["torch213-cxx11-cpu-x86_64-linux"]
    text = core_metadata.metadata_file(config, cell, version="1.0.0", framework_version="2.13.0")
    assert text.splitlines() == [
        "Metadata-Version: 2.4",
        "Name: demo-kernel",
        "Version: 1.0.0",
        "Summary: The demo-kernel kernel, built as torch213-cxx11-cpu-x86_64-linux",
        "License-Expression: MIT",
        "Requires-Python: >=3.9",
        "Requires-Dist: torch==2.13.*",
    ]


def test_packaging_reads_the_metadata_as_it_was_meant():
    general = 'upstream = "https://example.com/up"\npython-depends = ["einops"]'
    config, found = cells(framework='[torch]\nsrc = ["b.cpp"]', general=general)
    cell = found["torch213-cxx11-cpu-x86_64-linux"]
    text = core_metadata.metadata_file(config, cell, version="1.0.0+torch213.cxx11.cpu", framework_version="2.13.0+cpu")
    read_back = Metadata.from_email(text, validate=True)
    assert (read_back.metadata_version, read_back.name) == ("2.4", "demo-kernel")
    assert str(read_back.version) == "1.0.0+torch213.cxx11.cpu"
    assert read_back.license_expression == "MIT"
    assert list(read_back.project_urls.values()) == ["https://example.com/up"]
    assert str(read_back.requires_python) == ">=3.9"
    assert [requirement.name for requirement in read_back.requires_dist] == ["torch", "einops"]


def test_what_the_wheel_requires_by_name_stands_last_each_once():
    table = "[wheel]\nrequires = ['tokenizers>=0.20 ; python_version < \"3.13\"', 'einops']"
    config, found = cells(framework=f'[torch]\nsrc = ["b.cpp"]\n{table}', general='python-depends = ["einops"]')
    for variant in ("torch213-cxx11-cpu-x86_64-linux", "torch213-cxx11-cu130-x86_64-linux"):
        text = core_metadata.metadata_file(config, found[variant], version="1.0.0", framework_version="2.13.0")
        required = Metadata.from_email(text, validate=True).requires_dist
        assert [requirement.name for requirement in required] == ["torch", "einops", "tokenizers"]
        assert str(required[-1].marker) == 'python_version < "3.13"'


@pytest.mark.parametrize(
    ("path", "type_"),
    [("README.md", "text/markdown"), ("docs/./About.RST", "text/x-rst"), ("README", "text/plain")],
)
def test_the_readme_is_the_description_of_a_wheel_with_the_type_of_its_suffix(path, type_):
    text = f'[torch]\nsrc = ["b.cpp"]\n[wheel]\nreadme = "{path}"'
    config, found = cells(framework=text)
    given = "\ufeff# D\u00e9mo\r\n\r\nName: other\rend\n"
    cell = found["torch213-cxx11-cpu-x86_64-linux"]
    said = core_metadata.metadata_file(config, cell, version="1.0.0", framework_version="2.13.0", description=given)
    read_back = Metadata.from_email(said.encode(), validate=True)
    assert (read_back.description, read_back.description_content_type) == ("# D\u00e9mo\n\nName: other\nend\n", type_)
    assert read_back.name == "demo-kernel"
    assert fields.read(said.encode())["Requires-Dist"] == "torch==2.13.*"
