"""ROCm: several components, whose sources are translated one component after the other."""

import json
from pathlib import Path

import pytest

from tests.integration import rendered, rocm

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.torch,
    pytest.mark.rocm,
    rendered.needs_torch,
    pytest.mark.skipif(bool(rocm.why_not()), reason=rocm.why_not() or "-"),
]
COMPONENT = '\n[kernel.{name}]\nbackend = "rocm"\ndepends = []\nsrc = ["{source}"]\nrocm-archs = ["gfx90a"]\n{lines}\n'
SOURCE = "#include <cuda_runtime.h>\n__global__ void NAME() {}\n"


def commands(tmp_path, *components):
    """Configure a kernel of these components; return the compile command of each translation, with its target."""
    kernel = rendered.small_kernel(
        tmp_path / "kernel",
        "".join(COMPONENT.format(name=name, source=source, lines=lines) for name, source, lines in components),
        {source: SOURCE for _, source, _ in components},
        backend="rocm",
    )
    rendered.write_project(kernel, "rocm", tmp_path / "project")
    torch = rocm.rocm_torch(tmp_path / "torch", rendered.torch_folder())
    env = rendered.environment(ROCM_PATH=rocm.rocm_root(tmp_path))
    done = rendered.configure(tmp_path / "project", tmp_path / "build", f"-DKERNEL_TORCH_DIR={torch}", env=env)
    assert done.returncode == 0, done.output
    entries = json.loads((tmp_path / "build/compile_commands.json").read_text(encoding="utf-8"))
    found = [entry for entry in entries if entry["file"].endswith(".hip")]
    assert [entry["file"] for entry in found if not Path(entry["file"]).exists()] == []
    return {(Path(entry["file"]).name, target(entry["output"])): entry["command"].split() for entry in found}


def target(output):
    (folder,) = [part for part in Path(output).parts if part.endswith(".dir")]
    return folder.removesuffix(".dir").rpartition(".")[2]


def test_each_component_keeps_its_translations(tmp_path):
    found = commands(tmp_path, ("one", "csrc/a.cu", ""), ("two", "csrc/b.cu", ""))
    assert set(found) == {("a.hip", "_small_rocm"), ("b.hip", "_small_rocm")}


def test_a_translation_has_the_macros_and_flags_of_its_source(tmp_path):
    one = "defines = { NAME = 'first' }\nfile-flags = { 'csrc/*' = ['-O1'] }"
    found = commands(tmp_path, ("one", "csrc/a.cu", one), ("two", "csrc/a.cu", "defines = { NAME = 'second' }"))
    assert set(found) == {("a.hip", "one"), ("a.hip", "two")}
    assert {"-DNAME=first", "-O1"} <= set(found["a.hip", "one"])
    assert "-DNAME=second" in found["a.hip", "two"]
    assert not {"-DNAME=first", "-O1"} & set(found["a.hip", "two"])


def test_a_source_of_two_libraries_is_compiled_for_each(tmp_path):
    more = 'extension = "more"\ndefines = { NAME = "second" }\n[extension.more]\nsrc = ["torch-ext/binding.cpp"]'
    found = commands(tmp_path, ("one", "csrc/a.cu", "defines = { NAME = 'first' }"), ("two", "csrc/a.cu", more))
    assert set(found) == {("a.hip", "one"), ("a.hip", "two")}
    assert "-DNAME=second" in found["a.hip", "two"]
    assert "-DNAME=first" not in found["a.hip", "two"]
