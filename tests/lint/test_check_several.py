"""`builder check` of several kernels."""

import json

import pytest

from builder.cli import run
from tests.cli.folders import write


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("good", "warned", "broken"):
        write(tmp_path, name)
    for name, before, after in (("warned", '"MIT"', '"bsd"'), ("broken", "version = 1\n", "")):
        path = tmp_path / name / "build.toml"
        path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("kernels")
def test_the_text_has_the_problems_of_all_and_one_summary(capsys):
    assert run(["check", "*"]) == 2
    out = capsys.readouterr().out
    assert "--> broken/build.toml" in out
    assert "--> warned/build.toml" in out
    assert out.splitlines()[-3:] == [
        "broken/build.toml: found 1 error; `builder check --explain B011` says more",
        "warned/build.toml: found 1 warning; `builder check --explain B114` says more",
        "3 kernels: 1 error in 1, 1 warning in 1",
    ]


@pytest.mark.usefixtures("kernels")
def test_sound_kernels_are_one_line(capsys):
    assert run(["check", "good", "good"]) == 0
    assert capsys.readouterr().out == "1 kernel: no problems\n"


@pytest.mark.usefixtures("kernels")
def test_strict_counts_for_each(capsys):
    assert run(["check", "good", "warned"]) == 0
    assert run(["check", "--strict", "good", "warned"]) == 2
    assert capsys.readouterr().out.endswith("2 kernels: 1 error in 1\n")


@pytest.mark.usefixtures("kernels")
def test_the_json_has_the_form_for_one_by_the_folder_of_each(capsys):
    assert run(["check", "*", "--format", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert list(found["kernels"]) == ["broken", "good", "warned"]
    assert found["errors"] == {}
    run(["check", "broken", "--format", "json"])
    assert json.loads(capsys.readouterr().out) == found["kernels"]["broken"]


@pytest.mark.usefixtures("kernels")
def test_sarif_is_one_run_with_the_results_of_all(capsys):
    assert run(["check", "*", "--format", "sarif"]) == 2
    (only,) = json.loads(capsys.readouterr().out)["runs"]
    places = [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in only["results"]]
    assert places == ["broken/build.toml", "warned/build.toml"]
    assert [rule["id"] for rule in only["tool"]["driver"]["rules"]] == ["B011", "B114"]


@pytest.mark.usefixtures("kernels")
def test_github_gets_an_annotation_for_each_file(capsys):
    assert run(["check", "*", "--format", "github"]) == 2
    assert [line.split(",")[1] for line in capsys.readouterr().out.splitlines()] == [
        "file=broken/build.toml",
        "file=warned/build.toml",
    ]


def test_two_kernels_of_one_name_are_an_error(kernels, capsys):
    write(kernels, "good", folder="same")
    assert run(["check", "good", "same", "--format", "json"]) == 2
    out, err = capsys.readouterr()
    assert "'good' and 'same' are both kernel 'good'" in err
    assert list(json.loads(out)["errors"]) == ["same"]


@pytest.mark.usefixtures("kernels")
def test_a_name_without_a_kernel_is_reported_with_the_others(capsys):
    assert run(["check", "good", "nowhere", "good/build.toml"]) == 2
    out = capsys.readouterr().out
    assert "cannot read 'nowhere/build.toml'" in out
    assert out.endswith("2 kernels: 1 error in 1\n")
