"""What is wrong with a config and its files is found before a compiler runs, each with its place and its remedy."""

import pytest

from builder import lint, resources
from builder.config import Version
from builder.errors import Problem
from builder.lint import cxx_standard

GENERAL = '[general]\nname = "relu"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = {backends}\n{more}\n'
CUDA = '\n[kernel.{name}]\nbackend = "cuda"\ndepends = {depends}\nsrc = ["relu.cu"]\n{more}\n'


@pytest.fixture
def project(tmp_path):
    package = tmp_path / "torch-ext" / "relu"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for name in ("relu.cu", "relu.cpp"):
        (tmp_path / name).touch()
    return tmp_path


def general(backends='["cuda"]', more=""):
    return GENERAL.format(backends=backends, more=more)


def cuda(name="relu", depends='["torch"]', more=""):
    return CUDA.format(name=name, depends=depends, more=more)


def findings(project, text):
    (project / "build.toml").write_text(text, encoding="utf-8")
    return [located.problem for located in lint.inspect(project).found]


def places(project, text, code):
    """Return the quoted text of each finding with a code."""
    lines = text.split("\n")
    spans = [problem.span for problem in findings(project, text) if problem.code == code]
    return [lines[span.line - 1][span.column - 1 : span.end_column - 1] for span in spans]


def only(project, text, code) -> Problem:
    (problem,) = [problem for problem in findings(project, text) if problem.code == code]
    return problem


TORCH = "[torch]\n"

CASES = {
    "backend that is not enabled": (general('["cpu"]') + TORCH + cuda(), "B101", ['"cuda"']),
    "components of pure Python": (general() + "[torch-noarch]\n" + cuda(), "B102", ["relu"]),
    "noarch-only backend": (general('["cuda", "tpu", "cann"]') + TORCH + cuda(), "B103", ['"tpu"', '"cann"']),
    "file twice": (general() + '[torch]\nsrc = ["relu.cpp", "./relu.cpp"]\n' + cuda(), "B104", ['"./relu.cpp"']),
    "include": (general() + TORCH + cuda(more='include = [".", "inc"]'), "B105", ['"inc"']),
    "old C++ for the binding": (
        general() + '[torch]\ncxx-flags = ["-O2", "-std=c++17"]\n' + cuda(), "B129", ['"-std=c++17"'],
    ),
    "old C++ for a component": (
        general() + TORCH + cuda(more='cuda-flags = ["--std=c++17", "-std=c++20"]'), "B129", ['"--std=c++17"'],
    ),
    "old C++ for CUDA's host compiler": (
        general() + TORCH + cuda(more='cuda-flags = ["-Xcompiler=-std=gnu++1z", "-Xcompiler", "-std=c++14"]'),
        "B129", ['"-Xcompiler=-std=gnu++1z"', '"-std=c++14"'],
    ),
    "old C++ in two words": (
        general() + TORCH + cuda(more='cuda-flags = ["-std", "c++17", "-std", "c++20"]'), "B129", ['"c++17"'],
    ),
    "old C++ of one file": (
        general() + TORCH + cuda(more='file-flags = { "relu.cu" = ["-O3", "-std=c++17"] }'),
        "B129", ['"-std=c++17"'],
    ),
    "old C++ for a library that is not torch's": (
        general() + TORCH + cuda(depends="[]", more='cuda-flags = ["-std=c++17"]'), "B129", [],
    ),
    "old C++ of the stable ABI": (
        general() + '[torch]\nstable-abi = "2.11"\n' + cuda(more='cuda-flags = ["-std=c++17"]'), "B129", [],
    ),
    "old C++ for an old torch": (
        general() + '[torch]\nmaxver = "2.11"\n' + cuda(more='cuda-flags = ["-std=c++17"]'), "B129", [],
    ),
    "crossed torch": (general() + '[torch]\nminver = "2.13"\nmaxver = "2.12"\n' + cuda(), "B106", ['"2.13"']),
    "crossed as numbers": (general() + '[torch]\nminver = "2.9"\nmaxver = "2.13"\n' + cuda(), "B106", []),
    "crossed cuda": (
        general(more='[general.cuda]\nminver = "13.0"\nmaxver = "12.6"') + TORCH + cuda(), "B106", ['"13.0"'],
    ),
    "stable ABI": (general() + '[torch]\nmaxver = "2.12"\nstable-abi = "2.13"\n' + cuda(), "B107", ['"2.13"']),
    "stable ABI of one backend": (
        general() + '[torch]\nmaxver = "2.12"\n[torch.stable-abi]\ncuda = "2.13"\n' + cuda(), "B107", ['"2.13"'],
    ),
    "stable ABI of no backend": (general() + '[torch.stable-abi]\nxpu = "2.10"\n' + cuda(), "B108", ['"2.10"']),
    "two of CUTLASS": (
        general() + TORCH + cuda("a", '["cutlass_3_5"]') + cuda("b", '["torch", "cutlass_4_0"]'),
        "B109", ['"cutlass_4_0"'],
    ),
    "one of CUTLASS": (
        general() + TORCH + cuda("a", '["cutlass_4_0"]') + cuda("b", '["torch", "cutlass_4_0"]'), "B109", [],
    ),
    "unknown capability": (
        general() + TORCH + cuda(more='cuda-capabilities = ["3.5", "9.0", "10.3a", "10.9a"]'),
        "B112", ['"3.5"', '"10.9a"'],
    ),
    "capability that later GPUs run": (
        general() + TORCH + cuda(more='cuda-capabilities = ["8.0", "7.5"]'), "B112", [],
    ),
    "pairs": (
        general() + TORCH + cuda(more='cuda-capabilities = ["8.0:10.9", "3.5:8.6", "8.0:8.9", "9.0"]'),
        "B112", ['"8.0:10.9"', '"3.5:8.6"'],
    ),
    "pairs elsewhere": (
        general() + TORCH + cuda(more='cuda-capabilities = ["8.0:8.9", "9.0", "10.0f:10.0"]'),
        "B135", ['"8.0:8.9"', '"10.0f:10.0"'],
    ),
    "PTX that later GPUs run": (general() + TORCH + cuda(more='cuda-capabilities = ["5.0+PTX"]'), "B112", []),
    "arch": (
        general('["rocm"]') + TORCH + cuda(more='rocm-archs = ["gfx942", "gfx9"]').replace('"cuda"', '"rocm"'),
        "B112", ['"gfx9"'],
    ),
    "capability of a pure-Python kernel": (
        general() + '[torch-noarch]\ncuda_capabilities = ["3.5"]\n', "B112", ['"3.5"'],
    ),
    "license": (general().replace("MIT", "apache 2") + "[torch-noarch]\n", "B114", ['"apache 2"']),
    "glob": (general() + '[torch]\nsrc = ["*.cpp"]\n' + cuda(), "B115", ['"*.cpp"']),
    "matrix": (general() + TORCH + cuda() + '[matrix]\nsystems = ["x86_64-linux"]\n', "B116", ["[matrix]"]),
    "a key of ours": (general() + TORCH + cuda(more="defines = { X = 1 }"), "B130", ["defines"]),
    "spelling": (general() + '[torch-noarch]\ncuda-capabilities = ["9.0"]\n', "B117", ["cuda-capabilities"]),
    "no rows": (general('["cuda", "neuron"]') + "[torch-noarch]\n", "B118", ['"neuron"']),
    "no release row": (general('["cuda", "tpu"]') + "[torch-noarch]\n", "B118", ['"tpu"']),
    "no backends": (general("[]") + "[torch-noarch]\n", "B119", ["[]"]),
    "backend twice": (general('["cuda", "cuda"]') + "[torch-noarch]\n", "B119", ['"cuda"']),
    "cuda-minver": (general() + TORCH + cuda(more='cuda-minver = "99.0"'), "B123", ['"99.0"']),
    "old": (general().replace("edition = 5\n", "") + "[torch-noarch]\n", "B124", ["[general]"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code", "expected"), CASES.values(), ids=CASES.keys())
def test_a_finding_stands_at_what_is_wrong(project, text, code, expected):
    assert places(project, text, code) == expected


def test_a_sound_kernel_has_no_findings(project):
    assert findings(project, general() + TORCH + cuda()) == []


# --- what the matrix leaves out ---


def test_a_backend_without_a_cell_is_an_error_with_the_reason_for_each_row(project):
    text = general('["cpu", "cuda"]', '[general.cuda]\nmaxver = "12.4"') + TORCH + cuda()
    problem = only(project, text, "B110")
    assert problem.severity == "error"
    first, *reasons = problem.message.split("\n")
    assert first == "backend 'cuda' is left without a cell"
    assert reasons
    assert all("cuda" in reason and "is above maxver 12.4" in reason for reason in reasons)
    assert places(project, text, "B110") == ['"12.4"']


def test_a_config_without_a_cell_is_an_error_with_the_reason_for_each_row_of_every_backend(project):
    text = general('["cpu", "cuda"]') + '[torch]\nmaxver = "2.1"\n' + cuda()
    problem = only(project, text, "B111")
    assert problem.severity == "error"
    assert {reason.split(", ")[1].split()[0] for reason in problem.message.split("\n")[1:]} == {"cpu", "cuda"}
    assert places(project, text, "B111") == ['"2.1"']
    assert not [found for found in findings(project, text) if found.code == "B110"]


def test_a_kernel_without_a_cell_in_a_release_is_told_which_other_set_has_one(project):
    text = general('["cuda"]') + '[general.cuda]\nmaxver = "13.0"\n[torch]\nminver = "2.15"\n' + cuda()
    assert only(project, text, "B111").help == "build it with `--set preview`, widen what leaves the rows out"


def test_a_torch_that_left_the_release_set_is_told_which_set_has_it(project):
    problem = only(project, general() + '[torch]\nmaxver = "2.12"\n' + cuda(), "B111")
    assert problem.help == "build it with `--set legacy`, widen what leaves the rows out"


def test_each_reason_names_the_bound_that_left_its_row_out(project):
    text = general() + '[torch]\nminver = "2.14"\nmaxver = "2.14"\n' + cuda() + '[matrix.cuda]\ntoolkits = ["11.8"]\n'
    message = only(project, text, "B111").message
    assert "torch 2.13, cuda 12.6, x86_64-linux: torch 2.13 is below minver 2.14" in message
    assert "torch 2.14, cuda 13.0, x86_64-linux: " in message
    assert "11.8" in message


def test_backends_that_never_have_a_cell_are_no_error(project):
    found = findings(project, general('["neuron", "cann"]') + "[torch-noarch]\n")
    assert [(problem.code, problem.severity) for problem in found] == [("B118", "note"), ("B118", "note")]


# --- what is left to compile for ---


def test_no_capability_left_with_any_toolkit_is_an_error(project):
    problem = only(project, general() + TORCH + cuda(more='cuda-capabilities = ["3.5"]'), "B113")
    assert problem.severity == "error"


def test_no_capability_left_with_some_toolkits_is_a_warning_that_names_them(project):
    problem = only(project, general() + TORCH + cuda(more='cuda-capabilities = ["10.0a"]'), "B113")
    assert (problem.severity, problem.message) == (
        "warning", "no capability is left to compile for with CUDA 12.6",
    )  # fmt: skip
    assert 'cuda-minver = "13.0"' in problem.help


def test_toolkits_that_the_config_leaves_out_do_not_count(project):
    text = general(more='[general.cuda]\nminver = "13.0"') + TORCH + cuda(more='cuda-capabilities = ["10.0a"]')
    assert findings(project, text) == []


# --- licenses ---


@pytest.mark.parametrize("license_", ["MIT", "Apache-2.0 OR MIT", "LicenseRef-Mine", "apache-2.0", "GPL-3.0-or-later"])
def test_an_spdx_expression_is_accepted(project, license_):
    assert findings(project, general().replace("MIT", license_) + "[torch-noarch]\n") == []


@pytest.mark.parametrize(
    ("license_", "remedy"),
    [
        pytest.param("Apache 2.0", "did you mean 'Apache-2.0'?", id="space"),
        pytest.param("bsd", "did you mean 'BSD-3-Clause'?", id="family"),
        pytest.param("my own", "see https://spdx.org/licenses, or write 'LicenseRef-<name>'", id="unknown"),
        pytest.param("", "see https://spdx.org/licenses, or write 'LicenseRef-<name>'", id="empty"),
        pytest.param("MIT AND", "see https://spdx.org/licenses, or write 'LicenseRef-<name>'", id="half"),
    ],
)
def test_another_license_has_a_remedy(project, license_, remedy):
    problem = only(project, general().replace("MIT", license_) + "[torch-noarch]\n", "B114")
    assert (problem.severity, problem.help) == ("warning", remedy)


# --- several at once, and broken ones ---


def test_every_problem_is_found_in_one_run_in_the_order_of_the_file(project):
    text = general('["cuda", "cuda"]').replace("MIT", "bsd") + TORCH + cuda(more='include = ["inc"]')
    found = findings(project, text)
    assert [problem.code for problem in found] == ["B114", "B119", "B105"]
    assert [problem.span.line for problem in found] == sorted(problem.span.line for problem in found)


def test_ops_are_checked_even_when_the_config_is_broken(project):
    (project / "torch-ext" / "relu" / "ops.py").write_text('import torch\ntorch.library.define("relu::f", "()")\n')
    found = findings(project, general('["cudaa"]') + TORCH)
    assert [problem.code for problem in found] == ["B013", "B120"]


@pytest.mark.parametrize(
    ("content", "edition", "codes"),
    [
        pytest.param(None, None, ["B001"], id="missing"),
        pytest.param(b"\xff", None, ["B001"], id="not UTF-8"),
        pytest.param(b"[general", None, ["B002"], id="not TOML"),
        pytest.param(b"", 4, ["B011", "B016"], id="empty"),
        pytest.param(b"[general]\nedition = 7\n", None, ["B004"], id="newer"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_report_like_any_other(tmp_path, content, edition, codes):
    if content is not None:
        (tmp_path / "build.toml").write_bytes(content)
    report = lint.inspect(tmp_path)
    assert report.refused
    assert report.edition == edition
    assert [located.problem.code for located in report.found] == codes


def test_the_project_sets_the_standard_from_the_same_torch_on():
    cmake = (resources.CMAKE / "torch/extension.cmake").read_text(encoding="utf-8")
    (since, _) = cxx_standard.standards()[0]
    assert f"version VERSION_LESS {since})" in cmake
    assert [cxx_standard.standard(Version(text)) for text in ("2.0", "2.11", "2.12", "2.15")] == [17, 17, 20, 20]


def test_an_old_standard_names_the_rows_that_it_breaks(project):
    text = general(more="") + TORCH + cuda(more='cuda-flags = ["-std=c++17"]')
    problem = only(project, text + '[matrix]\nsystems = ["x86_64-linux"]\n', "B129")
    assert (
        "cells of torch 2.12, 2.13, 2.14, 2.15 do not compile: torch213-cxx11-cu126-x86_64-linux, " in problem.message
    )
    assert "cpu" not in problem.message


def test_a_capability_that_only_other_toolkits_have_is_left_out(project):
    bounds = '[general.cuda]\nminver = "13.0"\n'
    problem = only(project, general() + bounds + TORCH + cuda(more='cuda-capabilities = ["7.0", "9.0"]'), "B112")
    assert problem.message.startswith("no toolkit of this kernel's cells, CUDA 13.0")
    assert "CUDA 12.6" in problem.help
    text = general() + TORCH + cuda(more='cuda-capabilities = ["7.0", "9.0"]')
    assert [problem.code for problem in findings(project, text)] == []


def test_a_capability_that_is_new_with_a_toolkit_of_no_row_is_left_out(project):
    text = general() + TORCH + cuda(more='cuda-capabilities = ["9.0", "10.7a"]')
    assert "no row of the build matrix would" in only(project, text, "B112").help


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("cutlass_sycl", "sycl_tla", "component"),
        ("cutlass-sycl", "sycl_tla", "component"),
        ("apache-tvm-ffi", "tvm-ffi", "python"),
        ("tvm_ffi", "tvm-ffi", "python"),
    ],
)
def test_a_dependency_by_another_name_of_its_own_is_answered_with_the_one_it_has_here(project, old, new, where):
    python = f'python-depends = ["{old}"]' if where == "python" else ""
    text = general(more=python) + TORCH + cuda(depends=f'["{old if where == "component" else "torch"}"]')
    (problem,) = findings(project, text)
    assert problem.code == ("B013" if where == "component" else "B028")
    assert f"it is called '{new}'" in problem.help
