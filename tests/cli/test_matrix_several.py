"""`builder matrix` of several kernels."""

import json

import jsonschema
import pytest

from builder import resources
from builder.cli import run
from tests.cli.folders import write
from tests.paths import ROOT

EXAMPLES = ROOT / "examples"
TWO = (str(EXAMPLES / "relu"), str(EXAMPLES / "rmsnorm-stable"))
SCHEMA = json.loads((resources.DATA / "matrix.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "kernels", "one", "cpu", "cuda")
    write(tmp_path / "kernels", "two", "cpu")
    return tmp_path / "kernels"


@pytest.mark.usefixtures("kernels")
def test_several_kernels_are_one_table(capsys):
    assert run(["matrix", "kernels/*"]) == 0
    assert capsys.readouterr().out.splitlines()[:5] == [
        "2 kernels: 8 cells on 3 systems",
        "",
        "kernel  cells  cpu  cuda",
        "one     5      3    2",
        "two     3      3    -",
    ]


@pytest.mark.usefixtures("kernels")
def test_kernels_without_a_backend_that_is_asked_for_are_left_out_with_the_reason(capsys):
    assert run(["matrix", "kernels/*", "--backend", "cuda"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 kernel: 2 cells on 2 systems\n")
    assert out.endswith("\nleft out, no backend cuda: two\n")


@pytest.mark.usefixtures("kernels")
def test_a_backend_that_no_kernel_has_is_an_error(capsys):
    assert run(["matrix", "kernels/*", "--backend", "xpu"]) == 2
    assert capsys.readouterr().err.startswith("error: none of 2 kernels has the backend 'xpu'\n")


@pytest.mark.usefixtures("kernels")
def test_no_cell_of_any_kernel_is_nothing_to_do(capsys):
    assert run(["matrix", "kernels/*", "--backend", "cuda", "--system", "aarch64-darwin"]) == 3
    assert "left out, no cell is selected: one" in capsys.readouterr().err


def test_the_json_has_the_form_for_one_by_the_folder_of_each(capsys):
    assert run(["matrix", *TWO, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["kernels", "left-out", "errors"]
    assert list(found["kernels"]) == [folder.replace("\\", "/") for folder in TWO]
    for folder in TWO:
        jsonschema.validate(found["kernels"][folder], SCHEMA)
        run(["matrix", folder, "--format", "json"])
        assert json.loads(capsys.readouterr().out) == found["kernels"][folder]


@pytest.mark.parametrize("form", ["names", "github", "gitlab", "json", "table"])
def test_a_broken_kernel_fails_the_plan_and_only_lists_that_cannot_say_so_are_empty(kernels, form, capsys):
    (kernels / "broken").mkdir()
    (kernels / "broken/build.toml").write_text("[general]\nname = 1\n", encoding="utf-8")
    write(kernels, "one", folder="other")
    assert run(["matrix", "kernels/*", "nowhere", "--format", form]) == 2
    out, err = capsys.readouterr()
    assert "kernels/broken/build.toml" in err
    assert "'nowhere' is not there" in err
    assert "'kernels/one' and 'kernels/other' are both kernel 'one'" in err
    assert (out == "") == (form in {"names", "github", "gitlab"})
    if form == "json":
        assert sorted(json.loads(out)["errors"]) == ["kernels/broken", "kernels/other", "nowhere"]
        assert sorted(json.loads(out)["kernels"]) == ["kernels/one", "kernels/two"]


@pytest.mark.usefixtures("kernels")
def test_names_say_whose_cell_each_is(capsys):
    assert run(["matrix", "kernels/*", "--format", "names"]) == 0
    assert capsys.readouterr().out.split() == ["one:torch-cpu", "one:torch-cuda", "two:torch-cpu"]


@pytest.mark.usefixtures("kernels")
def test_explain_and_savings_show_each_kernel(capsys):
    assert run(["matrix", "kernels/*", "--explain"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if " cells on " in line] == [
        "one: 5 cells on 3 systems",
        "two: 3 cells on 3 systems",
    ]
    assert run(["matrix", "kernels/*", "--savings"]) == 0
    assert capsys.readouterr().out.count("what the stable ABI saves") == 2


def test_github_has_a_job_for_each_kernel_and_place_that_names_both(capsys):
    assert run(["matrix", *TWO, "--format", "github"]) == 0
    include = json.loads(capsys.readouterr().out)["include"]
    assert len({job["name"] for job in include}) == len(include)
    first = include[0]
    assert first["name"] == "relu-cpu-x86_64-linux"
    assert first["directories"] == TWO[0]
    assert all(variant.startswith("relu:torch") for variant in first["variants"].split())


def test_shards_are_shared_by_kernels(capsys):
    assert run(["matrix", *TWO, "--format", "github", "--shards", "14"]) == 0
    include = json.loads(capsys.readouterr().out)["include"]
    assert len(include) == 14
    assert any(job["directories"] == " ".join(TWO) for job in include)
    run(["matrix", *TWO, "--format", "names"])
    everything = capsys.readouterr().out.split()
    assert sorted(name for job in include for name in job["variants"].split()) == sorted(everything)


def test_more_jobs_than_a_matrix_has_are_shared_without_being_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (EXAMPLES / "relu/build.toml").read_text(encoding="utf-8")
    for number in range(30):
        (tmp_path / f"k{number}").mkdir()
        (tmp_path / f"k{number}/build.toml").write_text(
            text.replace('name = "relu"', f'name = "relu-{number}"'), encoding="utf-8"
        )
    assert run(["matrix", "k*", "--format", "github"]) == 0
    include = json.loads(capsys.readouterr().out)["include"]
    assert len(include) == 256
    assert sum(len(job["variants"].split()) for job in include) == 30 * 31


def test_a_folder_that_a_workflow_would_read_as_two_is_refused(kernels, capsys):
    write(kernels, "three", folder="two words")
    assert run(["matrix", "kernels/*", "--format", "github"]) == 2
    assert 'directory "kernels/two words" cannot stand in a workflow' in capsys.readouterr().err


@pytest.mark.usefixtures("kernels")
def test_gitlab_has_the_folders_of_each_job(capsys):
    assert run(["matrix", "kernels/*", "--format", "gitlab"]) == 0
    pipeline = json.loads(capsys.readouterr().out)
    assert pipeline["one-cpu-x86_64-linux"]["variables"] == {
        "BUILDER_VARIANTS": "one:torch-cpu",
        "BUILDER_DIRECTORIES": "kernels/one",
    }
