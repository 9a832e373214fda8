"""`builder build` of several kernels, up to the point where compilers would start."""

import json

import pytest

from builder.cli import run
from tests.cli.folders import write
from tests.paths import ROOT

STABLE = str(ROOT / "examples" / "rmsnorm-stable")


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BUILDER_STORE", str(tmp_path / "store"))
    write(tmp_path / "kernels", "one", "cpu", "cuda")
    write(tmp_path / "kernels", "two", "cpu")
    return tmp_path / "kernels"


def cells_of(out):
    return [line.split(": ")[0] for line in out.splitlines()]


@pytest.mark.usefixtures("kernels")
def test_one_plan_says_whose_each_cell_is(capsys):
    assert run(["build", "kernels/*", "--dry-run"]) == 0
    assert cells_of(capsys.readouterr().out) == ["one:torch-cpu", "one:torch-cuda", "two:torch-cpu"]


@pytest.mark.usefixtures("kernels")
def test_the_json_has_the_form_for_one_by_the_folder_of_each(capsys):
    assert run(["build", "kernels/*", "--json", "--backend", "cuda", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["left-out"] == {"two": "no backend cuda"}
    assert found["errors"] == {}
    assert err == "note: left out, no backend cuda: two\n"
    assert run(["build", "kernels/one", "--json", "--backend", "cuda", "--dry-run"]) == 0
    assert found["kernels"] == {"kernels/one": json.loads(capsys.readouterr().out)}


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_where_one_is_refused_nothing_is_built_and_every_reason_is_told(kernels, options, capsys):
    (kernels / "broken").mkdir()
    (kernels / "broken/build.toml").write_text("[general]\nname = 1\n", encoding="utf-8")
    write(kernels, "one", folder="other")
    assert run(["build", "kernels/*", "nowhere", "--json", *options]) == 2
    out, err = capsys.readouterr()
    assert "kernels/broken/build.toml" in err
    assert "'nowhere' is not there" in err
    assert "'kernels/one' and 'kernels/other' are both kernel 'one'" in err
    assert err.endswith("error: nothing was built; --keep-going builds the others\n")
    found = json.loads(out)
    assert found["kernels"] == {}
    assert sorted(found["errors"]) == ["kernels/broken", "kernels/other", "nowhere"]


def test_a_file_that_is_missing_is_told_before_anything_is_built(kernels, capsys):
    compiled = kernels / "compiled"
    compiled.mkdir()
    text = (ROOT / "examples/relu/build.toml").read_text(encoding="utf-8")
    (compiled / "build.toml").write_text(text, encoding="utf-8")
    assert run(["build", "kernels/*", "--backend", "cpu"]) == 2
    assert "kernels/compiled/build.toml" in capsys.readouterr().err


def test_with_keep_going_the_others_are_built_and_the_end_is_the_same(kernels, capsys):
    (kernels / "two/build.toml").write_text("[general]\nname = 1\n", encoding="utf-8")
    assert run(["build", "kernels/*", "--keep-going", "--json", "--dry-run"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert list(found["kernels"]) == ["kernels/one"]
    assert list(found["errors"]) == ["kernels/two"]


@pytest.mark.usefixtures("kernels")
def test_a_variant_is_that_of_the_kernels_that_have_it(capsys):
    assert run(["build", "kernels/*", "--variant", "torch-cuda", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    assert cells_of(out) == ["one:torch-cuda"]
    assert err == "note: left out, no cell that is named: two\n"
    assert run(["build", "kernels/*", "--variant", "torch-cpu", "--dry-run"]) == 0
    assert cells_of(capsys.readouterr().out) == ["one:torch-cpu", "two:torch-cpu"]


@pytest.mark.usefixtures("kernels")
def test_a_variant_can_name_its_kernel_also_where_there_is_one(capsys):
    assert run(["build", "kernels/*", "--variant", "two:torch-cpu", "--variant", "one:torch-cuda", "--dry-run"]) == 0
    assert cells_of(capsys.readouterr().out) == ["one:torch-cuda", "two:torch-cpu"]
    assert run(["build", "kernels/one", "--variant", "one:torch-cpu", "--dry-run"]) == 0
    assert cells_of(capsys.readouterr().out) == ["torch-cpu"]


@pytest.mark.usefixtures("kernels")
def test_every_variant_that_there_is_not_is_told(capsys):
    words = ["--variant", "twoo:torch-cpu", "--variant", "two:torch-cuda", "--variant", "torch-cpus"]
    assert run(["build", "kernels/*", *words, "--dry-run"]) == 3
    assert capsys.readouterr().err == (
        "error: 'twoo:torch-cpu': no kernel 'twoo' is named\n  help: did you mean 'two'?\n"
        "error: 'two:torch-cuda': no such cell of 'two'\n  help: `builder matrix --format names` shows what there is\n"
        "error: 'torch-cpus': no kernel has such a cell\n  help: did you mean 'torch-cpu'?\n"
    )


@pytest.mark.usefixtures("kernels")
def test_kernels_without_code_for_the_gpus_that_are_named_are_left_out(capsys):
    assert run(["build", "kernels/*", STABLE, "--archs", "9.0", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    assert {name.split(":")[0] for name in cells_of(out)} == {"rmsnorm-stable"}
    assert "note: left out, nothing to build has code for GPUs whose architecture can be named" in err


@pytest.mark.usefixtures("kernels")
def test_nothing_at_all_to_build_is_its_own_exit_code(capsys):
    assert run(["build", "kernels/*", "--archs", "9.0", "--dry-run"]) == 3
    assert capsys.readouterr().err.startswith("error: no cell of any kernel is selected: there is nothing to build\n")


@pytest.mark.usefixtures("kernels")
def test_a_name_for_the_ops_is_that_of_one_kernel(capsys):
    assert run(["build", "kernels/*", "--unique-id", "same"]) == 2
    assert capsys.readouterr().err.startswith("error: --unique-id names the ops of one kernel\n")
