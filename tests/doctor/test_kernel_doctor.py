"""`builder doctor DIR`: the cells of a kernel, its sources and kernels from elsewhere, and its required GPUs."""

import base64
import json

from builder import doctor, matrix
from builder.cli import run
from builder.environment import foreign
from builder.kernel import load
from builder.make import kernel_lock
from builder.store import KERNELS, SOURCES, Store
from tests.given.files import write

HASH = bytes(range(32))
REV = "1" * 40
TEXT = """[general]
name = "small"
version = 1
edition = 5
license = "MIT"
backends = ["cuda"]
{depends}
[torch]
{sources}
[require]
gpus = {gpus}

[kernel.one]
backend = "cuda"
depends = ["torch"]
src = ["one.cu"]
cuda-capabilities = {capabilities}
"""


def kernel(root, *, gpus=("H100",), capabilities=("9.0",), depends="", sources=""):
    """Return a kernel for CUDA."""
    values = {"gpus": json.dumps(gpus), "capabilities": json.dumps(capabilities)}
    text = TEXT.format(depends=depends, sources=sources, **values)
    return load(write(root / "kernel", {"torch-ext/small/__init__.py": "", "one.cu": "", "build.toml": text}))


def facts(found, tmp_path):
    cells = matrix.select(found.config, [row for row in matrix.rows() if row.set == "release"])
    store = Store(tmp_path / "store")
    return {fact.name: fact for fact in doctor.of_kernel(found, cells, store)}


def test_a_required_gpu_is_held_against_every_cell(tmp_path):
    found = facts(kernel(tmp_path, gpus=["H100", "B300", "A100"], capabilities=["9.0", "10.3"]), tmp_path)
    assert list(found) == ["GPU H100", "GPU B300", "GPU A100"]
    assert found["GPU H100"].found == "code in all of 14 cells of CUDA"
    assert (found["GPU B300"].found, found["GPU B300"].help) == (None, "4 of 14 cells of CUDA have no code for it")
    assert found["GPU A100"].help == "14 of 14 cells of CUDA have no code for it"


def test_a_source_from_elsewhere_is_there_or_fetched_by_the_next_build(tmp_path):
    url = "https://example.org/cut.git"
    one = kernel(tmp_path, gpus=[], sources=f'[sources.cut]\ngit = "{url}"\nrev = "{REV}"')
    before = facts(one, tmp_path)["source cut"]
    assert (before.found, before.help) == (None, f"the next build fetches it from {url}")
    folder = tmp_path / "store" / SOURCES / foreign.identity(one.config.sources["cut"])
    folder.mkdir(parents=True)
    (folder / "source.json").write_text("{}")
    assert facts(one, tmp_path)["source cut"].found == "in the store"


def test_a_kernel_that_it_depends_on_is_locked_and_there_or_not(tmp_path):
    one = kernel(tmp_path, gpus=[], depends='kernel-depends = [{ repo-id = "team/base", version = 2 }]')
    assert "builder lock" in facts(one, tmp_path)["kernel team/base"].help
    entry = {
        "dependency": {"repo-id": "team/base", "version": 2},
        "lock": {"commit": REV, "hash": f"sha256-{base64.b64encode(HASH).decode()}"},
    }
    (one.root / kernel_lock.NAME).write_text(json.dumps([entry]))
    assert facts(one, tmp_path)["kernel team/base"].help == "the next build fetches it at 1111111"
    (tmp_path / "store" / KERNELS / HASH.hex()).mkdir(parents=True)
    assert facts(one, tmp_path)["kernel team/base"].found == "1111111, in the store"
    (one.root / kernel_lock.NAME).write_text("{}")
    assert "is not a lock of kernels" in facts(one, tmp_path)[kernel_lock.NAME].help


def test_each_cell_of_the_kernel_has_its_reason(tmp_path, capsys):
    one = kernel(tmp_path, gpus=["B300"], capabilities=["9.0", "10.3"])
    assert run(["doctor", str(one.root), "--store", str(tmp_path / "store"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["kernel", "facts", "cells", "notes"]
    assert [fact["name"] for fact in found["facts"]] == ["GPU B300"]
    lacking = {cell["variant"]: cell["missing"] for cell in found["cells"] if "cu126" in cell["variant"]}
    assert len(found["cells"]) == 14
    assert len(lacking) == 4
    assert all(lacking.values())
    assert "4 cells: B300 is required, and gets no code of 'one' with CUDA 12.6" in found["notes"]


def test_the_same_as_text(tmp_path, capsys):
    one = kernel(tmp_path, gpus=["H100"])
    assert run(["doctor", str(one.root), "--store", str(tmp_path / "store")]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(
        "small: 14 cells on 2 systems\n\nok  GPU H100           code in all of 14 cells of CUDA\n"
    )
    assert "of 14 cells of release can be built here: `builder doctor` shows this machine" in said.err


def test_a_cell_without_device_code_is_a_line_of_the_plan_and_no_error(tmp_path, capsys):
    one = kernel(tmp_path, gpus=[], capabilities=["10.3"])
    assert run(["matrix", str(one.root), "--explain", "--store", str(tmp_path / "store")]) == 0
    said = capsys.readouterr()
    assert "4 cells: component 'one' asks for 10.3, and CUDA 12.6 compiles none of it" in said.out
    assert "cells can be built here" in said.err
