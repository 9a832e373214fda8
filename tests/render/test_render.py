"""A kernel becomes a project: complete, deterministic, and safe whatever its config says."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import toml
from builder.config import Backend
from builder.errors import BuilderError, ConfigError
from builder.kernel import load
from builder.render import backends, is_noarch, quoting, render
from builder.resources import DATA
from tests.paths import ROOT

EXAMPLES = ROOT / "examples"
CUTLASS_4_0 = "dc4817921edda44a549197ff3a9dcf5df0636e7b"
RENDERED = ("CMakeLists.txt", "pyproject.toml", "registration.h", "_ops.py", "requirement.py", "metadata.json")
CASES = [
    (path.parent.name, str(backend))
    for path in sorted(EXAMPLES.glob("*/build.toml"))
    for backend in backends(load(path.parent))
]


def write(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return load(root)


def kernel(root, *, general="", torch="", component="", backend="cpu", framework="torch", extra="", files=None):
    """Write a small kernel whose tables have the given lines in them, and load it."""
    package = "tvm-ffi-ext" if framework == "tvm-ffi" else "torch-ext"
    source = f"{package}/binding.cpp"
    config = f"""
[general]
name = "tiny"
version = 3
edition = 5
license = "Apache-2.0"
backends = ["{backend}"]
{general}

[{framework}]
{"" if framework == "torch-noarch" else f'src = ["{source}"]'}
{torch}
"""
    if framework != "torch-noarch":
        config += f"""
[kernel.one]
backend = "{backend}"
depends = []
src = ["one.cpp"]
{component}
"""
    standard = {f"{package}/tiny/__init__.py": "", source: "", "one.cpp": "", "build.toml": config + extra}
    return write(root, {**standard, **(files or {})})


@pytest.mark.parametrize(("example", "backend"), CASES)
def test_an_example_renders_to_the_tree_on_disk(example, backend, golden):
    project = render(load(EXAMPLES / example), Backend(backend), unique_id="golden")
    shown = {path: project[path] for path in project.files if path.rpartition("/")[2].removesuffix(".in") in RENDERED}
    golden(f"render/{example}/{backend}", {**shown, "files.txt": "".join(f"{path}\n" for path in project.files)})


@pytest.mark.parametrize(("example", "backend"), CASES)
def test_a_project_holds_the_cmake_of_its_own_backend_alone(example, backend):
    project = render(load(EXAMPLES / example), Backend(backend))
    folders = {path.split("/")[1] for path in project.files if path.startswith("cmake/") and path.count("/") > 1}
    assert not (folders & {"cpu", "cuda", "rocm", "xpu", "metal"}) - {backend}


@pytest.mark.parametrize(("example", "backend"), CASES)
def test_every_function_a_project_calls_is_in_it(example, backend):
    project = render(load(EXAMPLES / example), Backend(backend))
    cmake = {path: project[path] for path in project.files if path.endswith((".cmake", "CMakeLists.txt"))}
    defined = {name for text in cmake.values() for name in re.findall(r"^function\((\w+)", text, re.MULTILINE)}
    called = {name for text in cmake.values() for name in re.findall(r"^\s*(kernel_\w+)\(", text, re.MULTILINE)}
    assert called <= defined
    included = {
        name for name in defined if any(re.search(rf"^\s*{name}\(", text, re.MULTILINE) for text in cmake.values())
    }
    assert defined == included, "a module that nothing uses"


SCRIPT = """
import sys
from pathlib import Path
from builder.config import Backend
from builder.kernel import load
from builder.render import backends, render
for path in sorted(Path(sys.argv[1]).glob("*/build.toml")):
    kernel = load(path.parent)
    for backend in backends(kernel):
        print(path.parent.name, backend, render(kernel, backend).digest)
"""


def test_two_processes_render_the_same_bytes(tmp_path):
    copy = shutil.copytree(EXAMPLES, tmp_path / "another folder", ignore=shutil.ignore_patterns("__pycache__"))
    outputs = []
    for folder, seed, locale, zone in ((EXAMPLES, "0", "C", "UTC"), (copy, "4711", "C.UTF-8", "Asia/Kathmandu")):
        environ = {
            "PYTHONHASHSEED": seed,
            "LC_ALL": locale,
            "TZ": zone,
            "PYTHONPATH": str(EXAMPLES.parent),
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
        }
        command = [sys.executable, "-c", SCRIPT, str(folder)]
        outputs.append(subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=True).stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") == len(CASES)


def test_the_id_is_of_the_content(tmp_path):
    first = render(kernel(tmp_path / "a"), Backend.CPU)
    assert first == render(kernel(tmp_path / "b"), Backend.CPU)
    other = render(kernel(tmp_path / "c", files={"one.cpp": "// changed"}), Backend.CPU)
    name = re.compile(r"_tiny_cpu_([0-9a-f]{7})\b")
    assert set(name.findall(first["CMakeLists.txt"])) != set(name.findall(other["CMakeLists.txt"]))


def test_a_file_of_another_backend_does_not_change_the_id(tmp_path):
    extra = '\n[kernel.two]\nbackend = "cuda"\ndepends = []\nsrc = ["two.cu"]\n'
    trees = []
    for folder, text in (("a", "// one"), ("b", "// two")):
        root = tmp_path / folder
        kernel(root)
        config = (root / "build.toml").read_text().replace('backends = ["cpu"]', 'backends = ["cpu", "cuda"]')
        trees.append(write(root, {"build.toml": config + extra, "two.cu": text}))
    assert render(trees[0], Backend.CPU) == render(trees[1], Backend.CPU)
    assert render(trees[0], Backend.CUDA) != render(trees[1], Backend.CUDA)


def test_one_name_is_everywhere(tmp_path):
    project = render(kernel(tmp_path), Backend.CPU, unique_id="abc")
    assert json.loads(project["torch-ext/tiny/metadata.json"])["id"] == "_tiny_cpu_abc"
    assert "_tiny_cpu_abc" in project["CMakeLists.txt"]
    assert "torch.ops._tiny_cpu_abc" in project["torch-ext/tiny/_ops.py"]


@pytest.mark.parametrize("unique_id", ["", "a-b", "a b", "a;b", "ä", "a\n", "x)"])
def test_an_id_that_is_no_part_of_a_name_is_refused(tmp_path, unique_id):
    with pytest.raises(BuilderError, match="cannot be the id"):
        render(kernel(tmp_path), Backend.CPU, unique_id=unique_id)


def test_a_backend_that_the_kernel_does_not_have_is_refused(tmp_path):
    with pytest.raises(BuilderError, match="has no backend 'cuda'"):
        render(kernel(tmp_path), Backend.CUDA)


def test_a_backend_without_components_is_noarch(tmp_path):
    loaded = kernel(tmp_path)
    config = (tmp_path / "build.toml").read_text().replace('["cpu"]', '["cpu", "tpu"]')
    loaded = write(tmp_path, {"build.toml": config})
    assert [is_noarch(loaded, backend) for backend in backends(loaded)] == [False, True]
    project = render(loaded, Backend.TPU)
    assert sorted(project.files) == [
        "pyproject.toml",
        "torch-ext/tiny/__init__.py",
        "torch-ext/tiny/_ops.py",
        "torch-ext/tiny/metadata.json",
    ]


def test_the_stable_abi_is_asked_for_by_its_backend_alone(tmp_path):
    project = render(kernel(tmp_path, torch='stable-abi = { cpu = "2.10" }'), Backend.CPU)
    assert "kernel_torch_find(BACKEND cpu STABLE_ABI 2.10)" in project["CMakeLists.txt"]
    table = toml.loads(project["pyproject.toml"])
    assert table["project"]["dependencies"] == ["torch>=2.10"]
    assert "requirement.py" not in project.files


@pytest.mark.parametrize(
    ("built_with", "least"), [("0.1.12", "0.1.13"), ("0.1.13.post3", "0.1.13.post3"), ("0.1.20", "0.1.20")]
)
def test_a_rendered_project_asks_for_no_tvm_ffi_whose_addons_are_shared(built_with, least, monkeypatch):
    project = render(load(EXAMPLES / "relu-tvm-ffi"), Backend.CPU)
    table = toml.loads(project["pyproject.toml"])
    assert "apache-tvm-ffi>=0.1.13" in table["build-system"]["requires"]
    (provider,) = table["tool"]["dynamic-metadata"]
    module = {}
    exec(compile(project["requirement.py"], "requirement.py", "exec"), module)
    monkeypatch.setitem(module, "version", lambda _: built_with)
    asked = module["dynamic_metadata"](provider, {})
    assert asked == {"dependencies": [f"apache-tvm-ffi>={least},<0.2"]}


def test_bounds_of_torch_are_those_of_the_build(tmp_path):
    project = render(kernel(tmp_path, torch='minver = "2.11"\nmaxver = "2.12"'), Backend.CPU)
    assert "torch>=2.11,<2.13" in toml.loads(project["pyproject.toml"])["build-system"]["requires"]


def test_python_dependencies_become_packages(tmp_path):
    project = render(kernel(tmp_path, general='python-depends = ["tvm-ffi"]'), Backend.CPU)
    assert "apache-tvm-ffi>=0.1.13" in toml.loads(project["pyproject.toml"])["project"]["dependencies"]
    assert json.loads(project["torch-ext/tiny/metadata.json"])["python-depends"] == ["tvm-ffi"]


def test_metadata_has_the_keys_in_the_order_of_the_contract(tmp_path):
    general = """upstream = "https://example.com/up"
source = "https://example.com/src"
kernel-depends = [{ repo-id = "a/b", version = 2 }, { repo-id = "c/d", revision = "main" }]
"""
    table = json.loads(render(kernel(tmp_path, general=general), Backend.CPU)["torch-ext/tiny/metadata.json"])
    order = ["name", "id", "version", "license", "upstream", "source", "python-depends", "kernel-depends", "backend"]
    assert list(table) == order
    assert table["kernel-depends"] == [{"repo-id": "a/b", "version": 2}, {"repo-id": "c/d", "revision": "main"}]


def test_the_public_client_reads_the_metadata(tmp_path):
    rust = pytest.importorskip("kernels._rust")
    general = 'kernel-depends = [{ repo-id = "a/b", version = 2 }]\nupstream = "https://example.com/up"'
    text = render(kernel(tmp_path, general=general), Backend.CPU)["torch-ext/tiny/metadata.json"]
    metadata = rust.Metadata.from_bytes(text.encode())
    assert (str(metadata.name), metadata.version) == ("tiny", 3)
    assert [depends.repo_id for depends in metadata.kernel_depends] == ["a/b"]


@pytest.mark.parametrize("backend", ["cuda", "rocm"])
def test_text_of_the_config_cannot_reach_cmake_through_the_metadata(tmp_path, backend):
    general = 'license = "@CMAKE_CXX_COMPILER@ \\"archs\\": []"\nupstream = "https://u@h/@KERNEL_ARCHITECTURES@"'
    loaded = kernel(tmp_path, backend=backend, general=general.split("\n")[1])
    config = (tmp_path / "build.toml").read_text().replace('license = "Apache-2.0"', general.split("\n", maxsplit=1)[0])
    loaded = write(tmp_path, {"build.toml": config})
    text = render(loaded, Backend(backend))["metadata.json.in"]
    assert text.count("@") == 2
    table = json.loads(text.replace("@KERNEL_ARCHITECTURES@", '["x"]'))
    assert table["license"] == '@CMAKE_CXX_COMPILER@ "archs": []'
    assert table["upstream"] == "https://u@h/@KERNEL_ARCHITECTURES@"
    assert table["backend"]["archs"] == ["x"]


def test_cuda_says_what_each_toolkit_compiles_and_loses(tmp_path):
    loaded = kernel(tmp_path, backend="cuda", component='cuda-capabilities = ["8.0", "10.0a"]\ncuda-minver = "12.8"')
    text = render(loaded, Backend.CUDA)["CMakeLists.txt"]
    assert "  CAPABILITIES\n    CUDA>=12.8 8.0 10.0a\n    CUDA>=11.8 8.0 lost 10.0a\n" in text
    assert "  MINVER 12.8\n" in text


@pytest.mark.parametrize(
    ("depends", "backend", "lines"),
    [
        ("cutlass_3_8", "cuda", ["NAME cutlass", "VERSION 3.8.0", "WHEEL nvidia-cutlass==3.8.0.0"]),
        (
            "cutlass_4_0",
            "cuda",
            ["NAME cutlass", "VERSION 4.0.0", "VARIABLE CUTLASS_SRC_DIR", f"COMMIT {CUTLASS_4_0}"],
        ),
        ("sycl_tla", "xpu", ["NAME sycl_tla", "VARIABLE SYCL_TLA_SRC_DIR"]),
        ("metal-cpp", "metal", ["NAME metal-cpp", "CONTAINS Metal/Metal.hpp"]),
    ],
)
def test_a_library_of_headers_is_looked_for(tmp_path, depends, backend, lines):
    extra = f'\n[kernel.two]\nbackend = "{backend}"\ndepends = ["{depends}"]\nsrc = ["two.cpp"]\n'
    project = render(kernel(tmp_path, backend=backend, extra=extra, files={"two.cpp": ""}), Backend(backend))
    assert "cmake/headers/find.cmake" in project.files
    text = project["CMakeLists.txt"]
    assert all(f"  {line}\n" in text for line in lines)
    assert ("WHEEL" in text) == ("3_8" in depends)
    assert ("COMMIT" in text) == ("4_0" in depends)


def test_every_version_of_cutlass_is_pinned_once():
    facts = toml.loads((DATA / "cutlass.toml").read_text())["cutlass"]
    names = toml.loads((DATA / "dependencies.toml").read_text())["component"]
    versions = sorted(fact["cutlass"] for fact in names.values() if "cutlass" in fact)
    assert sorted([*facts["wheels"], *facts["commits"]]) == versions
    assert all(re.fullmatch("[0-9a-f]{64}", wheel["sha256"]) for wheel in facts["wheels"].values())
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in facts["commits"].values())


def test_headers_come_along_whoever_lists_them(tmp_path):
    component = 'include = ["inc"]'
    loaded = kernel(tmp_path, component=component, files={"inc/deep/a.cuh": "", "csrc/b.h": "", "inc/note.md": ""})
    files = render(loaded, Backend.CPU).files
    assert {"inc/deep/a.cuh", "csrc/b.h"} <= set(files)
    assert "inc/note.md" not in files


@pytest.mark.parametrize(
    ("name", "backend"),
    [("a.cu", "cpu"), ("a.hip", "cuda"), ("a.metal", "cpu"), ("a.mm", "xpu"), ("a.cu", "xpu"), ("a.metal", "rocm")],
)
def test_a_source_of_another_backend_is_refused_where_it_is_listed(tmp_path, name, backend):
    extra = f'\n[kernel.two]\nbackend = "{backend}"\ndepends = []\nsrc = [\n  "one.cpp",\n  "{name}",\n]\n'
    loaded = kernel(tmp_path, backend=backend, extra=extra, files={name: ""})
    with pytest.raises(ConfigError) as caught:
        render(loaded, Backend(backend))
    (problem,) = caught.value.problems
    assert (problem.code, problem.key) == ("B062", ("kernel", "two", "src", 1))
    assert problem.span is not None


UNREPRESENTABLE = ["a;b", "$<CONFIG>", "[", "end\\", "", "SOURCES", "SHELL:-a"]


@pytest.mark.parametrize("text", UNREPRESENTABLE)
@pytest.mark.parametrize("key", ["cxx-flags", "include"])
def test_what_cmake_cannot_hold_is_refused_with_its_position(tmp_path, key, text):
    if key == "include" and text == "":
        pytest.skip("not a path")
    lines = f'{key} = ["-O1", {quoting.toml(text)}]'
    loaded = kernel(tmp_path, component=lines)
    with pytest.raises(ConfigError) as caught:
        render(loaded, Backend.CPU)
    (problem,) = caught.value.problems
    assert (problem.code, problem.key) == ("B060", ("kernel", "one", key, 1))
    assert problem.span.line == (tmp_path / "build.toml").read_text().splitlines().index(lines) + 1


def test_a_file_that_a_glob_finds_is_refused_at_the_glob(tmp_path):
    loaded = kernel(
        tmp_path, extra='\n[kernel.two]\nbackend = "cpu"\ndepends = []\nsrc = ["x/*.cpp"]\n', files={"x/a;b.cpp": ""}
    )
    with pytest.raises(ConfigError, match="separates") as caught:
        render(loaded, Backend.CPU)
    assert caught.value.problems[0].key == ("kernel", "two", "src", 0)


def test_every_problem_is_reported_in_one_run(tmp_path):
    loaded = kernel(tmp_path, component='cxx-flags = ["a;b", "-fplugin=x", "c;d"]')
    with pytest.raises(ConfigError) as caught:
        render(loaded, Backend.CPU)
    assert [problem.code for problem in caught.value.problems] == ["B060", "B061", "B060"]


UNSAFE = [
    "-fplugin=evil.so",
    "-fplugin-arg-x-y=z",
    "-fpass-plugin=evil.so",
    "-wrapper",
    "@flags.txt",
    "-B/tmp/evil",
    "-B",
    "-specs=evil.specs",
    "--specs=evil",
    "--compiler-bindir=/tmp",
    "-ccbin",
    "-ccbin=/tmp/evil",
    "--options-file",
    "-optf",
    "-Xcompiler=-fplugin=evil.so",
    "-Xcompiler=-O2,-fplugin=evil.so",
    "-Wl,-plugin,evil.so",
    "-Wl,@file",
    "-Xclang=-load",
    "--config=x.cfg",
    "--gcc-toolchain=/tmp",
    "-fuse-ld=/tmp/evil",
    "--ld-path=/tmp/evil",
    "--cuda-path=/tmp",
    "--rocm-path=/tmp",
    "-Xcompiler='-fplugin=x'",
]


@pytest.mark.parametrize("flag", UNSAFE)
@pytest.mark.parametrize(
    ("backend", "key"), [("cpu", "cxx-flags"), ("cuda", "cuda-flags"), ("rocm", "hip-flags"), ("xpu", "sycl-flags")]
)
def test_a_flag_that_loads_code_is_refused_unless_it_is_allowed(tmp_path, backend, key, flag):
    loaded = kernel(tmp_path, backend=backend, component=f"{key} = [{quoting.toml(flag)}]")
    with pytest.raises(ConfigError, match="--allow-unsafe-flags") as caught:
        render(loaded, Backend(backend))
    assert caught.value.problems[0].key == ("kernel", "one", key, 0)
    assert quoting.cmake(flag) in render(loaded, Backend(backend), allow_unsafe_flags=True)["CMakeLists.txt"]


@pytest.mark.parametrize(
    "flags", [["-Xcompiler", "-fplugin=evil.so"], ["-Xclang", "-load", "-Xclang", "evil.so"], ["-Xlinker", "@x"]]
)
def test_what_a_flag_hands_on_is_judged_too(tmp_path, flags):
    loaded = kernel(tmp_path, component=f"cxx-flags = {quoting.toml(flags)}")
    with pytest.raises(ConfigError, match="B061"):
        render(loaded, Backend.CPU)


SAFE = [
    "-O3",
    "-DX=@Y@",
    "-fopenmp-simd",
    "-std=c++17",
    "--use_fast_math",
    "-Xcompiler=-fopenmp",
    "-lineinfo",
    "-Wno-unused",
    "-DBUILD=1",
    "-march=armv8-a",
    "--ptxas-options=-v",
    "-diag-suppress=177",
    "-include",
    "--expt-extended-lambda",
    "-static-global-template-stub=false",
    "-fPIC",
    "--default-stream=per-thread",
]


@pytest.mark.parametrize("flag", SAFE)
def test_a_common_flag_is_not_refused(tmp_path, flag):
    loaded = kernel(tmp_path, component=f"cxx-flags = [{quoting.toml(flag)}]")
    assert quoting.cmake(flag) in render(loaded, Backend.CPU)["CMakeLists.txt"]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
HOSTILE = st.one_of(
    TEXT,
    st.sampled_from(
        [
            '"',
            "')",
            "${HOME}",
            "$ENV{HOME}",
            "@X@",
            "#[[",
            "]]",
            '"""',
            "\\",
            "{{ x }}",
            "{% x %}",
            ")\nfoo(",
            "x" * 5000,
        ]
    ),
    st.lists(st.sampled_from(list("\"'$;)(\n[]{}@#\\<>%` x")), min_size=1, max_size=20).map("".join),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(license_=HOSTILE, flag=HOSTILE, include=HOSTILE, hub=HOSTILE, revision=HOSTILE)
def test_no_string_of_a_config_becomes_syntax(tmp_path, license_, flag, include, hub, revision):  # noqa: PLR0917
    general = f"kernel-depends = [{{ repo-id = {quoting.toml(hub)}, revision = {quoting.toml(revision)} }}]\n"
    component = f"cxx-flags = [{quoting.toml(flag)}]\ninclude = [{quoting.toml(include)}]\n"
    try:
        loaded = kernel(tmp_path, general=general, component=component)
        config = (tmp_path / "build.toml").read_text(encoding="utf-8")
        loaded = write(
            tmp_path, {"build.toml": config.replace('license = "Apache-2.0"', f"license = {quoting.toml(license_)}", 1)}
        )
        project = render(loaded, Backend.CPU, unique_id="x", allow_unsafe_flags=True)
    except ConfigError as error:
        assert all(problem.span is not None for problem in error.problems)  # noqa: PT017  not every example is refused
        return
    table = toml.loads(project["pyproject.toml"])
    found = table["project"]["license"]
    assert found == {"text": license_} or (
        isinstance(found, str) and found.lower() == " ".join(license_.split()).lower()
    )
    assert table["tool"]["scikit-build"]["wheel"]["py-api"] == "py3"
    metadata = json.loads(project["torch-ext/tiny/metadata.json"])
    assert metadata["license"] == license_
    assert metadata["kernel-depends"] == [{"repo-id": hub, "revision": revision}]
    ast.parse(project["torch-ext/tiny/_ops.py"])
    lists = project["CMakeLists.txt"]
    plain = render(
        kernel(tmp_path / "plain", component='cxx-flags = ["F"]\ninclude = ["I"]'), Backend.CPU, unique_id="x"
    )
    expected = (
        plain["CMakeLists.txt"]
        .replace("    F\n", f"    {quoting.cmake(flag)}\n")
        .replace("    I\n", f"    {quoting.cmake(include)}\n")
    )
    assert lists == expected
