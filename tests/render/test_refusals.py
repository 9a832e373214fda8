"""What a project cannot hold, or would run code, is refused where the config says it."""

import pytest

from builder import toml
from builder.config import Backend
from builder.errors import ConfigError
from builder.render import quoting, render
from tests.render.small import kernel


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


UNREPRESENTABLE = ["a;b", "$<CONFIG>", "[", "end\\", "SOURCES", "SHELL:-a"]


@pytest.mark.parametrize(
    ("key", "text"), [("cxx-flags", ""), *((key, text) for key in ("cxx-flags", "include") for text in UNREPRESENTABLE)]
)
def test_what_cmake_cannot_hold_is_refused_with_its_position(tmp_path, key, text):
    lines = f'{key} = ["-O1", {toml.spelled(text)}]'
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
    loaded = kernel(tmp_path, backend=backend, component=f"{key} = [{toml.spelled(flag)}]")
    with pytest.raises(ConfigError, match="--allow-unsafe-flags") as caught:
        render(loaded, Backend(backend))
    assert caught.value.problems[0].key == ("kernel", "one", key, 0)
    assert quoting.cmake(flag) in render(loaded, Backend(backend), allow_unsafe_flags=True)["CMakeLists.txt"]


@pytest.mark.parametrize("flag", ["-DX=`id`", "-DX=$(id)", "-Xcompiler=-DX=`id`"])
@pytest.mark.parametrize("lines", ["cuda-flags = ['-O2', '{}']", "file-flags = {{ 'one.cpp' = ['-O2', '{}'] }}"])
def test_a_flag_that_runs_a_command_in_the_shell_of_nvcc_is_refused(tmp_path, lines, flag):
    loaded = kernel(tmp_path, backend="cuda", component=lines.format(flag))
    with pytest.raises(ConfigError, match="makes nvcc's shell run a command") as caught:
        render(loaded, Backend.CUDA)
    assert caught.value.problems[0].key[-1] == 1


@pytest.mark.parametrize(
    "flags", [["-Xcompiler", "-fplugin=evil.so"], ["-Xclang", "-load", "-Xclang", "evil.so"], ["-Xlinker", "@x"]]
)
def test_what_a_flag_hands_on_is_judged_too(tmp_path, flags):
    loaded = kernel(tmp_path, component=f"cxx-flags = {toml.spelled(flags)}")
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
    loaded = kernel(tmp_path, component=f"cxx-flags = [{toml.spelled(flag)}]")
    assert quoting.cmake(flag) in render(loaded, Backend.CPU)["CMakeLists.txt"]
