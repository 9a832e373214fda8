"""What `builder build` does with kernels that cannot be imported, need more than torch, or ask for a device."""

import functools
import json
import zipfile
from pathlib import Path

import pytest

from builder.cli import run as command
from tests.given.files import edit
from tests.given.kernels import PLAIN_CELL, TINY_CELL, linux

CONFIG = """
[general]
name = "{name}"
version = 1
edition = 5
license = "MIT"
backends = ["cpu"]
{general}

[torch-noarch]
"""

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    linux,
]


@pytest.fixture
def build(build):
    """Build by what is installed beside the tests: the pinned torch would be one more environment."""
    return functools.partial(build, options=("--no-isolation",))


@pytest.fixture
def python_only(tmp_path):
    """Write a pure-Python kernel."""

    def write(init, *, name="stranger", general="", more=""):
        root = tmp_path / name
        package = root / "torch-ext" / name
        package.mkdir(parents=True)
        (root / "build.toml").write_text(CONFIG.format(name=name, general=general) + more)
        (package / "__init__.py").write_text(init)
        return root

    return write


def test_a_module_that_nobody_declares_refuses_the_wheel_before_anything_is_built(build, python_only, tmp_path):
    result, said = build(python_only("import einops\n"), check=5)
    assert result["status"] == "failed"
    assert "stranger cannot be imported: the module 'einops' is not declared" in result["reason"]
    assert 'add python-depends = ["einops"] to [general] of build.toml' in said
    assert "auditing" not in said
    assert not (tmp_path / "dist").exists()


@pytest.mark.slow
def test_what_build_toml_declares_is_there_when_the_wheel_is_loaded(build, plain, tmp_path):
    edit(plain / "build.toml", "version = 1\n", 'version = 1\npython-depends = ["einops"]\n')
    edit(plain / "ctypes-ext/plain/__init__.py", "import ctypes\n", "import ctypes\n\nimport einops\n")
    result, _ = build(plain, "--variant", PLAIN_CELL, options=())
    found = result["report"]["load-test"]
    assert found["outcome"] == "loaded"
    assert [each.partition(" ")[0] for each in found["packages"]] == ["einops"]
    record = json.loads(next((tmp_path / "dist").glob("*.record.json")).read_text())
    assert record["load-test"] == found
    assert record["sha256"] == result["sha256"]


@pytest.mark.network
def test_what_the_wheel_requires_is_there_with_its_data_when_it_is_loaded(build, python_only, tmp_path):
    init = "import json, pathlib, humanize\njson.loads((pathlib.Path(__file__).parent / 'tuned.json').read_text())\n"
    table = '[wheel]\npackage = "python"\nrequires = ["humanize>=4"]\ndata = ["python/*.json"]\n'
    kernel = python_only(init, more=table)
    (kernel / "torch-ext/stranger").rename(kernel / "python")
    (kernel / "python/tuned.json").write_text("{}")
    result, _ = build(kernel, options=())
    found = result["report"]["load-test"]
    assert found["outcome"] == "loaded"
    assert [each.partition(" ")[0] for each in found["packages"]] == ["humanize"]
    (path,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        record = next(name for name in wheel.namelist() if name.endswith("RECORD"))
        assert "stranger/tuned.json,sha256=" in wheel.read(record).decode()


@pytest.mark.parametrize("backend", ["metal", pytest.param("cuda", marks=pytest.mark.slow)])
def test_a_wheel_without_code_is_built_and_loaded_whatever_it_is_for(build, python_only, backend):
    kernel = python_only("import torch\n")
    config = (kernel / "build.toml").read_text().replace('backends = ["cpu"]', f'backends = ["{backend}"]')
    (kernel / "build.toml").write_text(config)
    result, _ = build(kernel)
    assert (result["variant"], result["report"]["load-test"]["outcome"]) == (f"torch-{backend}", "loaded")


def test_a_wheel_that_is_kept_in_spite_of_its_test_is_tested_again_where_that_is_asked(build, python_only, tmp_path):
    kernel = python_only("import no_such_module\n")
    result, said = build(kernel, "--load-test", "try")
    assert result["report"]["load-test"]["outcome"] == "not-importable"
    assert "load test: cannot be imported here" in said
    again, _ = build(kernel, "--load-test", "try")
    assert (again["status"], again["sha256"]) == ("hit", result["sha256"])
    refused, _ = build(kernel, check=5)
    assert "no_such_module" in refused["reason"]
    record = json.loads(next((tmp_path / "dist").glob("*.record.json")).read_text())
    assert record["load-test"]["module"] == "no_such_module"


@pytest.mark.slow
def test_a_wheel_that_was_not_tested_is_tested_when_that_is_asked_and_stays_the_same(build, python_only):
    kernel = python_only("")
    skipped, said = build(kernel, "--load-test", "skip")
    assert skipped["report"]["load-test"]["outcome"] == "not-tested"
    assert "load test: not tested: it was asked for no load test" in said
    tested, _ = build(kernel)
    assert (tested["status"], tested["sha256"]) == ("hit", skipped["sha256"])
    assert tested["report"]["load-test"]["outcome"] == "loaded"
    third, _ = build(kernel, "--load-test", "skip")
    assert third["report"]["load-test"]["outcome"] == "loaded"


def test_a_key_of_build_toml_says_what_the_option_says_and_the_option_wins(build, python_only):
    kernel = python_only("import no_such_module\n", more='\n[build]\nload-test = "try"\n')
    result, _ = build(kernel)
    assert result["report"]["load-test"]["outcome"] == "not-importable"
    build(kernel, "--load-test", "require", check=5)


@pytest.mark.slow
def test_the_rule_of_the_load_test_changes_no_byte(build, python_only, tmp_path):
    (tmp_path / "other").mkdir()
    first, _ = build(python_only("", name="same"), "--rebuild")
    config = tmp_path / "same/build.toml"
    config.write_text(config.read_text() + '\n[build]\nload-test = "skip"\n')
    second, _ = build(tmp_path / "same", "--rebuild")
    assert first["sha256"] == second["sha256"]


@pytest.mark.slow
def test_a_kernel_that_asks_for_a_device_is_a_wheel_and_the_index_says_how_far_it_came(build, python_only, tmp_path):
    result, said = build(python_only("import torch\ntorch.cuda.get_device_capability()\n", name="asking"))
    assert result["report"]["load-test"]["outcome"] == "imported"
    assert "imported, as far as a machine without a GPU can" in said
    assert command(["index", str(tmp_path / "dist"), "--output", str(tmp_path / "site")]) == 0
    page = (tmp_path / "site/kernels/asking/index.html").read_text()
    assert "<dt>load test</dt><dd>imported, as far as a machine without a GPU can" in page
    # The site keeps what it knows when it is made again from other wheels.
    build(python_only("", name="other"), "--output", str(tmp_path / "more"))
    assert command(["index", str(tmp_path / "more"), "--output", str(tmp_path / "site")]) == 0
    assert (tmp_path / "site/kernels/asking/index.html").read_text() == page


@pytest.mark.slow
def test_a_kernel_at_hand_is_there_for_the_one_that_depends_on_it(build, python_only):
    kernel = python_only(
        "from other import answer\nassert answer == 42\n",
        general='kernel-depends = [{ repo-id = "somebody/other", version = 1 }]',
    )
    before, _ = build(kernel, "--load-test", "skip")
    build(python_only("answer = 42\n", name="other"))
    result, _ = build(kernel)
    assert result["report"]["load-test"]["outcome"] == "loaded"
    assert result["report"]["load-test"]["packages"] == ["somebody/other"]
    assert result["sha256"] == before["sha256"]


@pytest.mark.slow
def test_a_package_that_loads_its_library_at_the_first_call_is_loaded(build, tiny):
    lazy = "def twice(input):\n    from ._ops import ops\n    return ops.twice(input)\n"
    (tiny / "torch-ext/tiny/__init__.py").write_text(lazy)
    result, _ = build(tiny, "--variant", TINY_CELL)
    found = result["report"]["load-test"]
    assert found["outcome"] == "loaded"
    assert list(found["ops"].values()) == [["CPU"]]


@pytest.mark.slow
def test_what_the_loader_says_is_not_hidden_by_the_package(build, tiny):
    package = "try:\n    from ._ops import ops\nexcept ImportError:\n    ops = None\n"
    (tiny / "torch-ext/tiny/__init__.py").write_text(package)
    source = tiny / "csrc/twice.cpp"
    asks = 'extern "C" int cuTensorMapEncodeTiled();\nint asks() { return cuTensorMapEncodeTiled(); }\n'
    source.write_text(f"{source.read_text()}\n{asks}")
    result, said = build(tiny, "--variant", TINY_CELL, check=5)
    assert "undefined symbol 'cuTensorMapEncodeTiled': it is of 'libcuda.so.1', the driver" in result["reason"]
    assert "cudaGetDriverEntryPoint" in said


@pytest.mark.slow
def test_a_compiled_kernel_with_a_stranger_is_refused_before_it_is_compiled(build, tiny):
    init = tiny / "torch-ext/tiny/__init__.py"
    init.write_text(f"{init.read_text()}\nimport no_such_module\n")
    result, _ = build(tiny, "--variant", TINY_CELL, check=5)
    assert "the module 'no_such_module' is not declared" in result["reason"]
    assert result["log"] is None or "[1/" not in Path(result["log"]).read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_wheel_says_nothing_of_the_machine_that_tested_it(build, python_only, tmp_path):
    result, _ = build(python_only("import torch\ntorch.cuda.current_device()\n", name="silent"))
    with zipfile.ZipFile(tmp_path / result["wheel"]) as wheel:
        texts = [wheel.read(name) for name in wheel.namelist()]
    assert not [text for text in texts if b"as far as" in text or b"load-test" in text]
