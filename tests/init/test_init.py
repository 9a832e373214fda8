import itertools
import subprocess
import sys

import pytest

from builder import init, lint, toml
from builder.cli import run
from builder.config.values import Backend, Framework
from builder.init import FRAMEWORKS, possible_backends
from builder.kernel import load
from builder.render import render
from tests.given.files import tree

URL = "github:someone/builder"


COMBINATIONS = [
    pytest.param(framework, backends, id=f"{framework}-{'+'.join(backends)}")
    for framework in FRAMEWORKS
    for possible in (possible_backends(framework),)
    for backends in sorted({(each,) for each in possible} | set(itertools.combinations(possible, 2)) | {possible})
]
"""Every framework with each backend that it can have, each pair of them, and all."""


def answers(framework, backends, *, name="my-kernel", license_="Apache-2.0"):
    return init.Answers.of(name=name, framework=framework, backends=backends, license_=license_, builder_url=URL)


@pytest.mark.parametrize(("framework", "backends"), COMBINATIONS)
def test_every_combination_passes_check_strict(framework, backends, tmp_path):
    init.write(init.files(answers(framework, backends)), tmp_path / "kernel")
    report = lint.inspect(tmp_path / "kernel").strict()
    assert not report.refused, report
    kernel = load(tmp_path / "kernel")
    assert kernel.config.framework is framework
    assert kernel.config.general.backends == backends


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=str)
def test_every_backend_renders(framework, tmp_path):
    backends = possible_backends(framework)
    init.write(init.files(answers(framework, backends)), tmp_path / "kernel")
    kernel = load(tmp_path / "kernel")
    for backend in backends:
        assert render(kernel, backend).files


@pytest.mark.parametrize(("framework", "backends"), COMBINATIONS)
def test_the_public_parser_takes_every_config(framework, backends, tmp_path):
    from kernels._rust import Build  # noqa: PLC0415  the oracle

    init.write(init.files(answers(framework, backends)), tmp_path / "kernel")
    Build.open(tmp_path / "kernel")


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=str)
def test_every_python_file_compiles_and_no_mark_is_left(framework):
    for path, text in init.files(answers(framework, possible_backends(framework))).items():
        assert "{@" not in text, path
        assert "@}" not in text, path
        assert text.endswith("\n"), path
        if path.endswith(".py"):
            compile(text, path, "exec")


def test_a_new_kernel_has_what_a_kernel_needs(tmp_path, capsys):
    assert run(["init", str(tmp_path / "my-kernel"), "--backends", "cpu, cuda"]) == 0
    written = {path.relative_to(tmp_path / "my-kernel").as_posix() for path in (tmp_path / "my-kernel").rglob("*")}
    assert {
        "build.toml",
        "README.md",
        "CARD.md",
        "flake.nix",
        ".gitignore",
        ".github/workflows/kernel.yml",
        "tests/test_scale.py",
        "benchmarks/bench_scale.py",
        "torch-ext/my_kernel/__init__.py",
    } <= written
    assert "csrc/scale.metal" not in written
    table = toml.loads((tmp_path / "my-kernel" / "build.toml").read_text())
    assert table["general"]["name"] == "my-kernel"
    assert table["general"]["backends"] == ["cpu", "cuda"]
    assert "next: cd" in capsys.readouterr().err


def made(folder, *options):
    assert run(["init", str(folder), "--backends", "cpu", *options]) == 0
    return {path: content.decode() for path, content in tree(folder).items()}


def test_flake_workflow_and_readme_take_the_builder_that_is_named(tmp_path, capsys):
    files = made(tmp_path / "my-kernel", "--builder-url", "https://github.com/someone/builder.git@v9")
    assert '"github:someone/builder/v9"' in files["flake.nix"]
    assert "uses: someone/builder/.github/workflows/kernel.yml@v9\n" in files[".github/workflows/kernel.yml"]
    assert "git+https://github.com/someone/builder@v9" in files["README.md"]
    assert not [name for name, text in files.items() if "OWNER/REPOSITORY" in text]
    assert "not known" not in capsys.readouterr().err


def test_the_environment_names_the_builder_too_and_the_option_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("BUILDER_URL", "github:from/environment")
    assert "github:from/environment" in made(tmp_path / "one")["flake.nix"]
    assert "github:from/option" in made(tmp_path / "two", "--builder-url", "github:from/option")["flake.nix"]


def test_where_the_builder_is_unknown_each_file_says_what_to_put_in(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("builder.init.find", lambda: None)
    files = made(tmp_path / "my-kernel")
    for name in ("flake.nix", ".github/workflows/kernel.yml"):
        assert "# EDIT: put the repository of builder in place of OWNER/REPOSITORY" in files[name], name
        assert files[name].count("OWNER/REPOSITORY") > 1, name
    said = capsys.readouterr().err
    assert "not known: put it in place of OWNER/REPOSITORY in flake.nix and the workflow of CI" in said
    assert "--builder-url" in said


def test_an_address_that_only_nix_reads_is_for_the_flake_alone(tmp_path, capsys):
    files = made(tmp_path / "my-kernel", "--builder-url", "path:../..")
    assert '"path:../.."' in files["flake.nix"]
    assert "OWNER/REPOSITORY" in files[".github/workflows/kernel.yml"]
    assert "in the workflow of CI" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ci", "file"), [("github", ".github/workflows/kernel.yml"), ("gitlab", ".gitlab-ci.yml"), ("none", None)]
)
def test_the_service_is_chosen(ci, file, tmp_path):
    files = made(tmp_path / "my-kernel", "--ci", ci, "--builder-url", URL)
    assert {name for name in files if "github" in name or "gitlab" in name} == ({file} - {None})


def test_a_file_that_is_there_is_never_replaced(tmp_path, capsys):
    (tmp_path / "my-kernel").mkdir()
    (tmp_path / "my-kernel" / "README.md").write_text("mine")
    assert run(["init", str(tmp_path / "my-kernel")]) == 3
    assert "already has README.md" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "my-kernel").iterdir()] == ["README.md"]


def test_other_files_may_be_there(tmp_path):
    (tmp_path / "my-kernel" / ".git").mkdir(parents=True)
    assert run(["init", str(tmp_path / "my-kernel")]) == 0


def test_a_directory_that_cannot_be_written_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run(["init", str(tmp_path / "file" / "my-kernel")]) == 2
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(["--name", "My Kernel"], "write 'my-kernel'", id="not a name"),
        pytest.param(["--name", "../../evil"], "is not a kernel name", id="a path"),
        pytest.param(["--name", "torch"], "name of a module", id="torch"),
        pytest.param(["--name", "json"], "name of a module", id="of the standard library"),
        pytest.param(["--name", "class"], "name of a module", id="a keyword"),
        pytest.param(["--backends", "tpu"], "cannot have backend tpu", id="noarch alone"),
        pytest.param(["--framework", "tvm-ffi", "--backends", "metal"], "cannot have backend metal", id="no cell"),
        pytest.param(["--backends", "gpu"], "gpu", id="unknown backend"),
        pytest.param(["--framework", "jax"], "jax", id="unknown framework"),
        pytest.param(["--license", "free"], "is not an SPDX license", id="license"),
        pytest.param(["--ci", "jenkins"], "jenkins", id="unknown service"),
        pytest.param(["--builder-url", 'x"; evil = "'], "is not the URL of a repository", id="breaks out of the flake"),
        pytest.param(["--builder-url", "a/b"], "is not the URL of a repository", id="no URL"),
        pytest.param(["--builder-url", "github:a/b\nx: y"], "is not the URL", id="breaks out of a line"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(options, message, tmp_path, capsys):
    assert run(["init", str(tmp_path / "my-kernel"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "my-kernel").exists()


def test_every_mistake_is_named_in_one_run(tmp_path, capsys):
    options = ["--name", "My", "--backends", "tpu", "--license", "free"]
    assert run(["init", str(tmp_path / "my-kernel"), *options]) == 2
    message = capsys.readouterr().err
    assert all(part in message for part in ("kernel name", "backend tpu", "SPDX"))


def test_a_license_cannot_become_toml():
    with pytest.raises(Exception, match="SPDX"):
        answers(Framework.TORCH, [Backend.CPU], license_='MIT"\nname = "x')


def test_two_processes_write_the_same(tmp_path):
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "builder", "init", tmp_path / seed, "--name", "my-kernel"]
        subprocess.run(command, env={"PYTHONHASHSEED": seed, "PATH": ""}, check=True, capture_output=True)
    one, two = (tree(tmp_path / seed) for seed in ("1", "2"))
    assert one == two
