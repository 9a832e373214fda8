"""`builder matrix` as a user runs it."""

import json
import re
import subprocess
import sys

import pytest

from builder.cli import run
from tests.paths import ROOT

EXAMPLES = ROOT / "examples"
RELU = str(EXAMPLES / "relu")
STABLE = str(EXAMPLES / "rmsnorm-stable")


def test_the_table_is_the_default(capsys):
    assert run(["matrix", RELU]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("relu: 31 cells on 3 systems\n")
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ((), 31),
        (("--set", "legacy"), 13),
        (("--set", "legacy", "--all"), 14),
        (("--system", "x86_64-linux"), 15),
        (("--system", "aarch64-linux", "--system", "aarch64-darwin"), 16),
        (("--backend", "cuda"), 14),
        (("--backend", "cuda", "--backend", "rocm", "--system", "x86_64-linux"), 10),
        (("--set", "preview"), 2),
        (("--set", "preview", "--set", "release"), 33),
        (("--set", "all"), 46),
    ],
)
def test_options_narrow_and_widen_the_plan(arguments, count, capsys):
    assert run(["matrix", RELU, "--format", "names", *arguments]) == 0
    assert len(capsys.readouterr().out.splitlines()) == count


def test_json_is_one_document_on_stdout(capsys):
    assert run(["matrix", STABLE, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kernel"] == "rmsnorm-stable"
    assert {cell["stable_abi"] for cell in document["cells"]} == {"2.10"}


def test_github_has_one_job_for_each_backend_system_and_container(capsys):
    assert run(["matrix", RELU, "--format", "github"]) == 0
    include = json.loads(capsys.readouterr().out)["include"]
    assert len({(job["backend"], job["system"], job["container"]) for job in include}) == len(include) == 12


def test_shards_share_the_cells(capsys):
    assert run(["matrix", RELU, "--format", "json", "--shards", "20"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["jobs"]) == 20
    assert sum(len(job["variants"].split()) for job in document["jobs"]) == len(document["cells"])
    assert run(["matrix", RELU, "--shards", "20"]) == 0
    assert "-1of2" in capsys.readouterr().out


def test_explain_names_the_rule_the_line_and_the_remedy(capsys):
    assert run(["matrix", STABLE, "--explain", "--backend", "cuda"]) == 0
    out = capsys.readouterr().out
    line = (EXAMPLES / "rmsnorm-stable" / "build.toml").read_text(encoding="utf-8").split("\n").index(
        'cuda = "2.10"'
    ) + 1
    assert "torch 2.13, cuda 13.0, x86_64-linux: merged" in out
    assert f"decided by build.toml:{line} (torch.stable-abi.cuda)" in out
    assert "to change it: without 'stable-abi' for cuda, every torch gets a wheel" in out


def test_savings_are_printed_for_each_backend(capsys):
    assert run(["matrix", STABLE, "--savings"]) == 0
    out = capsys.readouterr().out
    assert "rmsnorm-stable: what the stable ABI saves" in out
    assert "cuda     6       14" in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("--system", "x86_64-linx"), 2, "did you mean 'x86_64-linux'?", id="system"),
        pytest.param(("--system", "amiga"), 2, "choose from 'aarch64-darwin'", id="system like no other"),
        pytest.param(("--backend", "cude"), 2, "did you mean 'cuda'?", id="backend"),
        pytest.param(("--backend", "tpu"), 2, "'relu' has no backend 'tpu': it has cpu, cuda", id="backend it has not"),
        pytest.param(("--set", "preveiw"), 2, "did you mean 'preview'?", id="set"),
        pytest.param(("--format", "jsn"), 2, "did you mean 'json'?", id="format"),
        pytest.param(("--shards", "0"), 2, "0 shards: a matrix has 1 to 256 jobs", id="no shards"),
        pytest.param(("--shards", "many"), 2, "'many' is not a valid integer", id="shards that are no number"),
        pytest.param(("--shards", "2"), 2, "2 shards are too few", id="too few shards"),
        pytest.param(("--runner", "linux=x"), 2, "is not SYSTEM=LABEL of a known runner", id="runner"),
        pytest.param(("--changed-since", "no such"), 2, "no commit 'no such'", id="revision"),
        pytest.param(("--explain", "--format", "json"), 2, "--explain and --savings are tables", id="explain as json"),
        pytest.param(("--system", "x86_64-windows"), 3, "no cell of 'relu' is selected", id="nothing selected"),
        pytest.param(("--backend", "metal", "--system", "x86_64-linux"), 3, "metal: this part", id="no row"),
    ],
)
def test_a_mistake_is_said_in_one_message(arguments, code, said, capsys):
    assert run(["matrix", RELU, *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize("value", ["${{ github.token }}", "x\n::set-env name=a::b", "::add-mask::x", "\x1b]0;x\x07"])
@pytest.mark.parametrize(
    "option", ["--system", "--backend", "--set", "--format", "--runner", "--changed-since", "--shards"]
)
def test_a_value_never_reaches_the_log_as_a_workflow_command(option, value, capsys):
    assert run(["matrix", RELU, option, value]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert not [line for line in err.splitlines() if line.lstrip().startswith(("::", "##["))]
    assert "\x1b" not in err


def test_a_missing_kernel_is_said(tmp_path, capsys):
    assert run(["matrix", str(tmp_path / "nothing")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_explain_of_an_empty_plan_still_exits_with_nothing_to_do(tmp_path, capsys):
    text = (EXAMPLES / "relu" / "build.toml").read_text(encoding="utf-8")
    (tmp_path / "build.toml").write_text(text.replace("[torch]", '[torch]\nminver = "2.20"'), encoding="utf-8")
    assert run(["matrix", str(tmp_path), "--explain"]) == 3
    out, err = capsys.readouterr()
    assert out.count("left out [torch]") == 31
    assert "to change it: lower 'torch.minver' to 2.15" in out
    assert "error: no cell of 'relu' is selected" in err


def test_a_reader_that_leaves_early_gets_no_traceback():
    command = f"{sys.executable} -m builder matrix {RELU} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd=EXAMPLES.parent)
    assert done.stdout == "relu: 31 cells on 3 systems\n"
    assert done.stderr == ""


def test_two_processes_print_the_same_bytes():
    command = [sys.executable, "-m", "builder", "matrix", RELU, "--format", "json", "--all", "--shards", "20"]
    printed = set()
    for seed in ("1", "2"):
        environ = {"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": f"UTC-{seed}"}
        done = subprocess.run(command, env=environ, capture_output=True, check=True, cwd=EXAMPLES.parent)
        printed.add(done.stdout)
    assert len(printed) == 1


DOCS = (EXAMPLES.parent / "docs" / "matrix.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "block", re.findall(r"```console\n\$ builder (.*?)\n(.*?)```", DOCS, re.DOTALL), ids=lambda _: ""
)
def test_the_page_shows_what_is_printed(block, capsys, monkeypatch):
    command, output = block
    monkeypatch.chdir(EXAMPLES.parent)
    assert run(command.split()) == 0
    assert capsys.readouterr().out == output
